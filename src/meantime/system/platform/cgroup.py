"""A cgroup limits the number of processes, where we may make one. Only Linux has them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from . import NAME

PREFIX = "meantime-"


def home() -> Path:
    """The group that we are in, of the hierarchy that counts processes. OSError where there is none."""
    if NAME != "linux":
        raise FileNotFoundError("this system has no groups that count processes")
    ours = _own_paths()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        mount, (kind, _, options) = before.split()[4], after.split()[:3]
        if kind == "cgroup" and "pids" in options.split(","):
            return _below(mount, ours.get("pids", "/"))
        if kind == "cgroup2":
            group = _below(mount, ours.get("", "/"))
            with contextlib.suppress(OSError):
                if "pids" in (group / "cgroup.controllers").read_text().split():
                    return group
    raise FileNotFoundError("no cgroup here counts processes")


def _own_paths() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), path)
    return found


def _below(mount: str, path: str) -> Path:
    return Path(mount) / path.lstrip("/")


def check() -> None:
    """OSError, with the reason, where the number of processes cannot be limited."""
    where = home()
    if not os.access(where, os.W_OK):
        raise PermissionError(f"{where} may not be written to")


def make(base: Path, processes: int) -> tuple[Path, Path]:
    where = home()
    if (where / "cgroup.subtree_control").exists():
        (where / "cgroup.subtree_control").write_text("+pids")
    group = where / _name(base)
    group.mkdir(exist_ok=True)
    (group / "pids.max").write_text(str(processes))
    return where, group


def remove(base: Path) -> bool:
    """Whether it is gone. It is not while what was killed in it is still dying."""
    with contextlib.suppress(OSError):
        place = home() / _name(base)
        with contextlib.suppress(OSError):
            place.rmdir()
        return not place.exists()
    return True


def _name(base: Path) -> str:
    """A hash of the whole path: another ledger may have a task of the same id."""
    return PREFIX + hashlib.sha256(os.fsencode(base)).hexdigest()[:24]
