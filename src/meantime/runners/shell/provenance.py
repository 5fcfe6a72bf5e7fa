"""The owner of the processes that a state file names: this ledger, or, where the file was copied, the
original.

A state says where it was made: on which device, as which inode, in which folder. A file that was moved,
renamed or mounted elsewhere is still that file. A copy is not, and neither is a hard link in another folder.
"""

from __future__ import annotations

import os
import time
from enum import Enum
from pathlib import Path
from struct import Struct

from meantime.system.platform import short_boot

from .output_ring import State
from .shim import cells, process_tree

ORIGIN = Struct("<3Q")  # the cells DEVICE, INODE and FOLDER_INODE
PARTING = 1.0  # seconds in which a process that was killed, and holds its files no more, is still to be seen
PAUSE = 0.01


class Whose(Enum):
    OURS = "ours"
    ANOTHERS = "another's"  # the file is a copy
    UNSAID = "unsaid"  # made by an older version, or gone


def written(fd: int, folder: Path) -> bytes:
    """The beginning of a new state file, up to the id of its task."""
    made, lies = os.fstat(fd), os.stat(folder)
    data = bytearray(cells.ID)
    ORIGIN.pack_into(data, cells.DEVICE * 8, made.st_dev, made.st_ino, lies.st_ino)
    path = os.fsencode(folder)
    if len(path) <= cells.PATH_SIZE:
        data[cells.PATH : cells.PATH + len(path)] = path
    return bytes(data)


def whose(base: Path) -> Whose:
    try:
        with open(f"{base}{cells.STATE_FILE}", "rb", buffering=0) as file:
            data, found = file.read(), os.fstat(file.fileno())
        folder = os.stat(base.parent).st_ino
    except OSError:
        return Whose.UNSAID
    state = State(data) if len(data) == cells.SIZE else None
    if state is None or not any(said := (state[cells.DEVICE], state[cells.INODE], state[cells.FOLDER_INODE])):
        return Whose.UNSAID
    return Whose.OURS if said == (found.st_dev, found.st_ino, folder) else Whose.ANOTHERS


def made_in(base: Path) -> str:
    """The folder in which the state was made; empty where it does not say."""
    try:
        with open(f"{base}{cells.STATE_FILE}", "rb", buffering=0) as file:
            return os.fsdecode(os.pread(file.fileno(), cells.PATH_SIZE, cells.PATH).rstrip(b"\0"))
    except OSError:
        return ""


def disown(state: Path) -> None:
    """For a state that comes from a backup: it is nobody's here, whichever inode it was given."""
    fd = os.open(state, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(fd, ORIGIN.pack(1, 1, 1), cells.DEVICE * 8)  # never a file's own numbers
    finally:
        os.close(fd)


def this_boot() -> int:
    """As a cell holds it; 0 where the machine does not say."""
    return int(short_boot(16) or "0", 16)


def lives_without(state: State) -> bool:
    """Whether its shim lives, although it does not hold the file that this state was read from: so it
    holds the original. One that was killed just now is given the time to be gone."""
    until = time.monotonic() + PARTING
    while (seen := process_tree.facts(state[cells.SHIM_PID])) is not None:
        if seen[2] != state[cells.SHIM_START]:
            return False
        if time.monotonic() > until:
            return True
        time.sleep(PAUSE)
    return False
