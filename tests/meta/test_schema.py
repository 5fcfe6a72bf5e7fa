"""The schema repeats the kernel's words, and no statement is unused or missing."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

import pytest

from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.notices import NoticeState
from meantime.kernel.schedules import ScheduleState
from meantime.stores.sqlite.sql import queries

HERE = Path(__file__).resolve().parents[2] / "src" / "meantime" / "stores" / "sqlite"
MIGRATIONS = "\n".join(file.read_text() for file in sorted((HERE / "migrations").glob("*.sql")))
SOURCE = "\n".join(file.read_text() for file in sorted(HERE.glob("*.py")))
IN = r"{} IN\s*\(([^()]*)\)"


def words(text: str) -> set[str]:
    return set(re.findall(r"'(\w+)'", text))


@pytest.mark.parametrize(("column", "enums"), [("status", [Status]), ("state", [NoticeState, ScheduleState])])
def test_checks_list_the_kernels_values(column: str, enums: list[type[StrEnum]]):
    checks = re.findall(r"CHECK \(" + IN.format(column), MIGRATIONS)
    assert checks, f"no CHECK on {column}"
    found = [words(check) for check in checks]
    for listed in found:
        assert listed in [set(enum) for enum in enums]
    for enum in enums:
        assert set(enum) in found


def test_statuses_in_the_queries_are_the_active_or_the_ended_ones():
    for name, sql in queries().items():
        for listed in re.findall(IN.format("status"), sql):
            assert words(listed) in (set(ACTIVE), set(ENDED)), name


def test_every_query_is_used():
    unused = [name for name in queries() if f'"{name}"' not in SOURCE]
    assert unused == []


def test_every_query_that_is_used_exists():
    used = set(re.findall(r'SQL\["(\w+)"\]', SOURCE)) | set(re.findall(r'telling\.changed, "(\w+)"', SOURCE))
    assert used
    assert used <= set(queries())
