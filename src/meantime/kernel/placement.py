"""Where a task runs: here, which is the owner of the ledger, or in a pool of workers.

"pool:gpu" is any worker of that pool; "pool:gpu?gpu=a100&zone=b" only those that have these labels, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from .argument_checks import check_map, shown
from .errors import InvalidInput
from .model import Work
from .pool_slots import POOL

HERE = "here"
PLACED = ("call", "shell")  # kinds of work that workers perform
MOST_LABELS = 8  # of one place, or of one worker
_LABEL = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_PLACE = re.compile(rf"{POOL}[A-Za-z0-9][A-Za-z0-9_-]{{0,63}}(\?{_LABEL}={_LABEL}(&{_LABEL}={_LABEL})*)?")
_IS_LABEL = re.compile(_LABEL)


def check_place(value: object, name: str = "place") -> str:
    """The place as it is kept: its labels are sorted, so that the same ones are the same place."""
    if value == HERE:
        return HERE
    if not isinstance(value, str) or len(value) > 2_000 or _PLACE.fullmatch(value) is None:
        raise InvalidInput(
            f"{name}={shown(value)} is not a place.",
            hint='Write "pool:NAME", for example "pool:gpu" or, with labels, "pool:gpu?gpu=a100"; or "here".',
        )
    pool, _, labels = str(value).partition("?")
    if not labels:
        return pool
    given = [label.partition("=")[0] for label in labels.split("&")]
    if len(set(given)) < len(given) or len(given) > MOST_LABELS:
        raise InvalidInput(
            f"{name}={shown(value)} has a label twice, or more than {MOST_LABELS} labels.",
            hint="Name each label once.",
        )
    return f"{pool}?{'&'.join(sorted(labels.split('&')))}"


def check_places(value: object, name: str = "place") -> dict[str, str]:
    """The section `[engine.place]`: places by kind of work, or by kind and name with wildcards."""
    places = {
        key: check_place(place, f"{name}[{shown(key)}]") for key, place in check_map(value, name).items()
    }
    for key, place in places.items():
        if place != HERE and key.partition(":")[0] not in PLACED:
            raise InvalidInput(
                f"{name}[{shown(key)}] names work that runs at the owner of the ledger.",
                hint="Place functions (call) and commands (shell).",
            )
    return places


def check_labels(value: object, name: str = "labels") -> dict[str, str]:
    """The labels of a worker, which a place can name."""
    labels = check_map(value, name)
    for label, given in labels.items():
        if not all(isinstance(one, str) and _IS_LABEL.fullmatch(one) for one in (label, given)):
            raise InvalidInput(
                f"{name}[{shown(label)}]={shown(given)} is not a label.",
                hint="Use up to 64 letters, digits, '-', '_' and '.', and begin with a letter or digit.",
            )
    if len(labels) > MOST_LABELS:
        raise InvalidInput(f"{name} has {len(labels)} labels.", hint=f"Give at most {MOST_LABELS}.")
    return labels


def place_of(work: Work, places: Mapping[str, str]) -> str:
    """The configured place: that of the longest pattern that fits `kind:name`, otherwise that of the kind."""
    full = f"{work.kind}:{work.name}"
    fits = [key for key in places if ":" in key and fnmatchcase(full, key)]
    return places[max(fits, key=len)] if fits else places.get(work.kind, HERE)
