"""The operating system: which path is in use, what is weaker there, and what to mind on WSL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from meantime.system import platform

from .check_row import BAD, OK, CheckRow, Patient

# Hostile process trees of tests/faults that outlive a cancel, of all: docs/guides/platforms.md has the table.
TREES, SURVIVORS = 100, 6
WEAKER = {
    "platform": f"{platform.NAME}: weaker than Linux. {SURVIVORS} of {TREES} hostile process trees outlive a "
    "cancel, and programs that connect over TCP need the token (docs/guides/platforms.md)",
    "process": "known by pid, start on the wall clock and boot; a signal may meet a pid that was just used "
    "again",
    "reboot": "known by the time of the boot; a clock that is set can look like one, and commands are then "
    "found by their locks",
}
WINDOWS_DRIVE = re.compile(r"/mnt/[a-z](/|$)")
MOVE = "Set MEANTIME_HOME to a folder of the Linux file system, such as one below your Linux home."
UPGRADE = "In PowerShell: wsl --set-version <distribution> 2"
STOPS = (
    "WSL 2. It ends all processes a moment after the last terminal is closed, unless systemd runs in it; "
    "commands are then found to be lost at the next start"
)


def path(patient: Patient) -> Iterator[CheckRow]:
    for name, found in ({"platform": "linux"} if platform.NAME == "linux" else WEAKER).items():
        yield CheckRow(name, OK, found)


def wsl(patient: Patient) -> Iterator[CheckRow]:
    """No row where this is not WSL."""
    version = wsl_version(platform.kernel_name(), patient.environ.get("WSL_INTEROP", ""))
    if not version:
        return
    if version == 1:
        yield CheckRow("wsl", BAD, "WSL 1, whose kernel lacks what Meantime needs", UPGRADE)
    elif WINDOWS_DRIVE.match(str(patient.home.folder)):
        found = f"WSL 2, and {patient.home.folder} is on a drive of Windows, whose locks cannot be relied on"
        yield CheckRow("wsl", BAD, found, MOVE)
    else:
        yield CheckRow("wsl", OK, STOPS)


def wsl_version(kernel: str, interop: str) -> int:
    """1 or 2; 0 where it is not WSL. Kernels of WSL name Microsoft; a kernel of one's own in WSL 2 may
    not."""
    if "microsoft" in kernel.lower():
        return 2 if "microsoft-standard" in kernel.lower() or "wsl2" in kernel.lower() else 1
    return 2 if interop else 0
