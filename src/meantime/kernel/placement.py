"""Where a task runs: here, which is the owner of the ledger, or in a pool of workers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from .argument_checks import check_map, shown
from .errors import InvalidInput
from .limits import POOL
from .model import Work

HERE = "here"
_PLACE = re.compile(POOL + r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_place(value: object, name: str = "place") -> str:
    if isinstance(value, str) and (value == HERE or _PLACE.fullmatch(value)):
        return str(value)
    raise InvalidInput(
        f"{name}={shown(value)} is not a place.", hint='Write "pool:NAME", for example "pool:gpu", or "here".'
    )


def check_places(value: object, name: str = "place") -> dict[str, str]:
    """The section `[engine.place]`: places by kind of work, or by kind and name with wildcards."""
    return {key: check_place(place, f"{name}[{shown(key)}]") for key, place in check_map(value, name).items()}


def place_of(work: Work, places: Mapping[str, str]) -> str:
    """The configured place: that of the longest pattern that fits `kind:name`, otherwise that of the kind."""
    full = f"{work.kind}:{work.name}"
    fits = [key for key in places if ":" in key and fnmatchcase(full, key)]
    return places[max(fits, key=len)] if fits else places.get(work.kind, HERE)
