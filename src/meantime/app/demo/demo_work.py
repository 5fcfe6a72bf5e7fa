"""The six pieces of work. All of it is real: nothing here only pretends to be busy but the countdown."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from meantime.kernel.work import Call, Orderable
from meantime.ports.runner import current
from meantime.runners.shell.shell_work import Shell

from .subagent import Subagent

LIBRARY = Path(os.__file__).parent
ERRANDS = Path(__file__).parent / "errands"  # what the commands work on: copied, never used in place
NOT_OURS = ("site-packages", "dist-packages", "__pycache__")


class DemoPiece(NamedTuple):
    name: str
    work: Orderable[Any]
    telling: int = 1  # how many of the last lines that it said tell what came of it


def pieces(folder: Path, subagent: Subagent, slow: int) -> list[DemoPiece]:
    """In the order in which they are handed off; the slow one is the last to end."""
    errands = shutil.copytree(ERRANDS, folder / "errands", ignore=shutil.ignore_patterns("__pycache__"))
    suite = [sys.executable, "-m", "unittest", "-v", "test_small"]
    check = [sys.executable, "-m", "json.tool", "settings.json"]
    return [
        DemoPiece("hash the library", Call(hash_library)),
        DemoPiece("count its lines", Shell(_count_lines())),
        DemoPiece("run a test suite", Shell(suite, cwd=errands, merge=True), telling=2),
        DemoPiece("ask the subagent", Call(subagent.survey, str(LIBRARY), str(errands))),
        DemoPiece("check the settings", Shell(check, cwd=errands)),
        DemoPiece("count down", Shell(_countdown(slow))),
    ]


def hash_library() -> str:
    """Runs on a worker thread, says how far it is, and stops when it is asked to."""
    digest, files = hashlib.sha256(), list(_files())
    for place, file in enumerate(files):
        current().check()
        digest.update(file.read_bytes())
        current().progress(100 * place / len(files), message=file.name)
    return f"sha256 of {len(files):,} files: {digest.hexdigest()[:16]}…"


def _files() -> Iterator[Path]:
    for folder, inner, names in os.walk(LIBRARY):
        inner[:] = sorted(name for name in inner if name not in NOT_OURS)
        yield from (Path(folder, name) for name in sorted(names) if Path(folder, name).is_file())


def _count_lines() -> str:
    found = f"find {shlex.quote(str(LIBRARY))} -name '*-packages' -prune -o -name '*.py' -exec cat {{}} +"
    return f'echo "$({found} | wc -l) lines of Python"'


def _countdown(seconds: int) -> str:
    step = 'echo "$left s to go"; sleep 1; left=$((left - 1))'
    return f'left={seconds}; while [ "$left" -gt 0 ]; do {step}; done; echo "counted down from {seconds}"'
