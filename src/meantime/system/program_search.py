"""Programs, by the names that people give them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """The file that a process with this environment starts by that name, or by that path; None if there is
    none that can be executed. Without a PATH of its own, ours is looked through."""
    return shutil.which(name, path=environment.get("PATH"))
