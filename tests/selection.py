"""The families of the suite. A test of no family belongs to `core`, which is what `make test` runs. All
of them run with `make test-all`, and only these with `make test-all FAMILIES="browsers servers"`.

A file of a family says so in its `pytestmark`, which is read here as text: a run does not even import what it
leaves out. A test of such a file, or one of more than a second, belongs to `core` by a mark with its reason:
`@pytest.mark.core("…")`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

CORE = "core"
FAMILIES = {
    "agents": "drives real coding agents, which npm has",
    "browsers": "drives real browsers, which Debian has",
    "docs": "compares pages, pictures and signatures with the code",
    "faults": "kills, cuts, damages and floods",
    "frameworks": "plays agent frameworks and SDKs, each in an environment of its own",
    "processes": "starts real daemons, commands and terminals at length",
    "pythons": "runs in another environment: a wheel, a container, systemd, the POSIX path",
    "servers": "needs servers of others: NATS, PostgreSQL, MCP",
    "breadth": "repeats for more values, stores and doors what a test of `core` shows once",
}
_MARK = re.compile(r"\bmark\.(\w+)")
_OF_FILE = re.compile(r"^pytestmark = (?:\[[^\]]*\]|[^\n]*)", re.MULTILINE)


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--family",
        action="append",
        default=[],
        choices=[CORE, *FAMILIES],
        metavar="NAME",
        help=f"run only the tests of this family: {', '.join([CORE, *FAMILIES])}",
    )


def register_marks(config: pytest.Config) -> None:
    for name, does in FAMILIES.items():
        config.addinivalue_line("markers", f"{name}: {does}; a family of `make test-all`")
    config.addinivalue_line(
        "markers", "core(reason): takes over a second, and is in `make test` all the same"
    )


def is_left_out(path: Path, wanted: Sequence[str]) -> bool:
    """Whether no test of this file or folder can belong to these families. A folder without any is not
    entered: its conftest.py may import what `make test` does not install."""
    if not wanted:
        return False
    if path.is_dir():
        return all(is_left_out(each, wanted) for each in path.rglob("test_*.py"))
    if not (path.name.startswith("test_") and path.suffix == ".py"):
        return False
    text = path.read_text()
    of_file = families_of_file(text)
    if of_file:
        return of_file.isdisjoint(wanted) and not (CORE in wanted and "mark.core(" in text)
    return CORE not in wanted and set(_MARK.findall(text)).isdisjoint(wanted)


def families_of_file(text: str) -> set[str]:
    found = _OF_FILE.search(text)
    return set() if found is None else FAMILIES.keys() & set(_MARK.findall(found[0]))


def belongs(item: pytest.Item, wanted: Sequence[str]) -> bool:
    of_item = {mark.name for mark in item.iter_markers()} & {CORE, *FAMILIES} or {CORE}
    return not wanted or not of_item.isdisjoint(wanted)
