"""Where a file was made. A file that was moved is the same file; a copy of it is another one.

State that names processes is only right in the file in which it was written: a copy of it, from `cp -a`,
a backup or a snapshot, names processes that belong to the original. So such a file says where it was made,
and whoever is about to follow or signal what it names asks here first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Origin(NamedTuple):
    filesystem: int  # its id, which a remount and a restart of the machine leave alone, unlike the device
    device: int
    inode: int

    @classmethod
    def of(cls, path: str | Path) -> Origin:
        found = os.stat(path)
        return cls(os.statvfs(path).f_fsid, found.st_dev, found.st_ino)

    def is_of(self, path: str | Path) -> bool:
        """Whether this is the file, or folder, that was made there: for what is kept over a restart."""
        try:
            found = Origin.of(path)
        except OSError:
            return False
        return (self.filesystem, self.inode) == (found.filesystem, found.inode)

    def holds_processes(self, path: str | Path) -> bool:
        """The device must be the same, too. Snapshots of a file system keep its id and all inodes; and
        processes have their files open, so the device cannot have changed under them.
        """
        try:
            return Origin.of(path) == self
        except OSError:
            return False


ELSEWHERE = Origin(0, 0, 0)  # of no file: of what came from a backup, for one
