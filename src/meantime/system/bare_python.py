"""A Python that starts fast and shares little: without site-packages, and without loading the package
`meantime` itself. The modules that run in one import the standard library, `meantime.system.platform`,
`meantime.system.process_marks` and each other."""

from __future__ import annotations

import sys
from pathlib import Path

from meantime.system.platform.tree import import_paths

FOLDER = Path(__file__).parents[1]
# sys.argv[1] is our folder, [2] what the platform needs to import; the arguments of the program follow.
BEGIN = (
    "import sys; root = sys.modules['meantime'] = type(sys)('meantime'); root.__path__ = [sys.argv[1]]; "
    "sys.path += filter(None, sys.argv[2].split(':'))"
)


def command(code: str) -> list[str]:
    """The beginning of a command line that runs `code`, which begins with BEGIN."""
    return [sys.executable, "-I", "-S", "-c", code, str(FOLDER), ":".join(import_paths())]
