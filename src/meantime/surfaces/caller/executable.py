"""How this very executable is called: by its name where a shell finds it, otherwise by its path.

A model that is told to run `meantime` runs it in the shell of its agent. Codex uses a login shell, which
sets a PATH of its own, so a name that we find may be unknown there.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping

NAME = "meantime"
MODULE = "meantime.app.main"
PATIENCE = 5.0  # seconds for somebody's profile


def path() -> list[str]:
    """The words that start it from anywhere."""
    beside = os.path.join(os.path.dirname(sys.executable), NAME)
    for script in (os.path.abspath(sys.argv[0]), beside):
        if os.path.basename(script) == NAME and os.access(script, os.X_OK):
            return [script]
    return [sys.executable, "-m", MODULE]


def named(text: str) -> str:
    """A text for whoever ran us: the commands in it, if their shell does not find `meantime`, by our path."""
    mark = f"`{NAME} "
    if mark not in text or _is_found(sys.argv[0], os.environ):
        return text
    return text.replace(mark, f"`{shlex.join(path())} ")


def login_shell_finds(program: str, environ: Mapping[str, str]) -> bool:
    """Whether `meantime` is this program in a login shell of this person, as agents start one. A shell that
    takes too long, or cannot be started, says nothing: then nobody is warned."""
    import subprocess  # not on the way of a verb that only names us

    try:
        asked = subprocess.run(
            [environ.get("SHELL") or "sh", "-lc", f"command -v {NAME}"], env=dict(environ), timeout=PATIENCE,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return True
    said = os.fsdecode(asked.stdout).strip().splitlines()  # a profile may print, too
    return bool(said) and _same(said[-1], program)


def _is_found(started: str, environ: Mapping[str, str]) -> bool:
    if os.path.basename(started) != NAME:
        return True  # run as a module: whoever does so knows how
    # Not system/program_search.py: `shutil` takes longer to load than the verb that failed.
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    found = (os.path.join(folder, NAME) for folder in folders)
    first = next((path for path in found if os.access(path, os.X_OK)), "")
    return bool(first) and _same(first, started)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
