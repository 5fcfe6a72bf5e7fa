"""The machine: programs, kernel, disk, clock."""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from meantime import __version__
from meantime.kernel.errors import MeantimeError
from meantime.runners.shell.process_limit import check as check_cgroup
from meantime.surfaces.install.agent_configs import AGENTS, Place
from meantime.surfaces.terminal.errors import CliError
from meantime.system import platform

from .check_row import BAD, OK, WARN, CheckRow, Patient

WAL_RESET_MENDED = (3, 51, 3)
NEEDED = ("starlette", "uvicorn", "click")
FASTER = ("httptools",)
LITTLE, TOO_LITTLE = 1_000_000_000, 50_000_000  # bytes of free disk
DESCRIPTORS = 1024
OLDEST, NEWEST = 1_750_000_000, 4_100_000_000  # seconds: no clock that is set shows another time
LAG = 3600.0  # seconds that a file may seem to come from the future


def python(patient: Patient) -> Iterator[CheckRow]:
    yield CheckRow("python", OK, f"{sys.version.split()[0]} at {sys.executable}")
    yield CheckRow("meantime", OK, f"{__version__} at {Path(__file__).parents[2]}")


def sqlite(patient: Patient) -> Iterator[CheckRow]:
    mended = sqlite3.sqlite_version_info >= WAL_RESET_MENDED
    # What was wrong with the WAL before needs two connections that write; a ledger has one.
    note = "" if mended else f" (all that a ledger needs; {'.'.join(map(str, WAL_RESET_MENDED))} is newer)"
    yield CheckRow("sqlite", OK, f"{sqlite3.sqlite_version}{note}")


def extras(patient: Patient) -> Iterator[CheckRow]:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    slower = [name for name in FASTER if importlib.util.find_spec(name) is None]
    if missing:
        yield CheckRow("extras", BAD, f"missing: {', '.join(missing)}", "pip install 'meantime[server]'")
    elif slower:
        yield CheckRow(
            "extras", WARN, f"slower without {', '.join(slower)}", "pip install 'meantime[server]'"
        )
    else:
        yield CheckRow("extras", OK, ", ".join((*NEEDED, *FASTER)))


def mcp(patient: Patient) -> Iterator[CheckRow]:
    if importlib.util.find_spec("mcp") is not None:
        yield CheckRow("mcp", OK, f"mcp {version('mcp')}")
    elif agents := list(_installed(patient)):
        found = f"not installed, and {', '.join(agents)} is configured to start `meantime mcp`"
        yield CheckRow("mcp", BAD, found, "pip install 'meantime[server,mcp]'")
    else:
        yield CheckRow("mcp", OK, "not installed; only MCP needs it: pip install 'meantime[mcp]'")


def watch(patient: Patient) -> Iterator[CheckRow]:
    try:
        importlib.import_module("re2")
        yield CheckRow("watch", OK, "re2, for expressions of watches")
    except ModuleNotFoundError:
        needed = "only expressions of watches need it: pip install 'meantime[watch]'"
        yield CheckRow("watch", OK, f"re2 is not installed; {needed}")
    except ImportError as problem:
        todo = "Install it again: pip install --force-reinstall google-re2"
        yield CheckRow("watch", WARN, f"re2 cannot be loaded: {problem}", todo)


def _installed(patient: Patient) -> Iterator[str]:
    """The agents from whose configuration `meantime install --uninstall` would take something."""
    user = Path(patient.environ.get("HOME") or os.path.expanduser("~"))
    for host in AGENTS.values():
        with suppress(CliError):  # a file that cannot be read is the agent's trouble
            changes = host.changes(Place(None, user, patient.environ), ["meantime"], False)
            if any(change.is_one for change in changes):
                yield host.title


def kernel(patient: Patient) -> Iterator[CheckRow]:
    if lacks := platform.missing_calls():
        yield CheckRow("kernel", BAD, f"lacks {', '.join(lacks)}", platform.NEEDED_SYSTEM)
    else:
        yield CheckRow("kernel", OK, platform.USED_CALLS)
    try:
        check_cgroup()
        yield CheckRow("cgroup", OK, "the number of a command's processes can be limited")
    except MeantimeError as problem:
        yield CheckRow("cgroup", OK, f"{problem.message} Only limits.processes of a Shell needs it.")


def disk(patient: Patient) -> Iterator[CheckRow]:
    place = patient.home.folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    level = BAD if free < TOO_LITTLE else WARN if free < LITTLE else OK
    yield CheckRow(
        "disk",
        level,
        f"{free / 1e9:.1f} GB free",
        "" if level == OK else f"Make room on the disk of {place}.",
    )


def descriptors(patient: Patient) -> Iterator[CheckRow]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    level = OK if soft < 0 or soft >= DESCRIPTORS else WARN
    todo = "" if level == OK else f"Raise it before the daemon starts: ulimit -n {min(hard, 65_536)}"
    yield CheckRow("files", level, f"a process may open {soft} at once", todo)


def clock(patient: Patient) -> Iterator[CheckRow]:
    if not OLDEST < patient.now < NEWEST:
        todo = "Set it: times in lists are wrong until then."
        yield CheckRow("clock", WARN, "this machine's clock is not set", todo)
        return
    try:
        ahead = patient.home.ledger.stat().st_mtime - patient.now
    except OSError:
        ahead = 0.0
    if ahead > LAG:
        found = f"the ledger is {ahead / 3600:.0f} hours ahead of this machine's clock"
        yield CheckRow("clock", WARN, found, "Set the clock.")
    else:
        yield CheckRow("clock", OK, "plausible")
