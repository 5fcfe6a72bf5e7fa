"""Prints the tests that have failed in the last run, a line each, as pytest takes their names.

pytest-xdist records a test of a group as `name@group`, which pytest itself does not find again: with
`--last-failed` such a test is left out, or, where all that failed are such tests, everything runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

RECORD = Path(__file__).parents[1] / ".pytest_cache/v/cache/lastfailed"
MOST = 50  # that are worth a second run: with more, something else is wrong


def without_group(name: str) -> str:
    """Parameters, which are in brackets at the end, may have an @ of their own."""
    plain, at, group = name.rpartition("@")
    return plain if at and not group.endswith("]") else name


def failed(record: Path) -> list[str]:
    if not record.exists():
        return []
    names: Iterable[str] = json.loads(record.read_text())
    return [without_group(name) for name in names]


def main() -> int:
    found = failed(RECORD)
    if not found or len(found) > MOST:
        sys.stderr.write(f"{len(found)} tests have failed: from 1 to {MOST} are run again.\n")
        return 1
    sys.stdout.write("".join(f"{name}\n" for name in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
