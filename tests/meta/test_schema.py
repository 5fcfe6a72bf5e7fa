"""The schema repeats the kernel's words, and no statement is unused or missing."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.notices import NoticeState
from meantime.kernel.schedules import ScheduleState
from meantime.stores.sqlite.sql import migrate, queries

pytestmark = pytest.mark.docs

HERE = Path(__file__).resolve().parents[2] / "src" / "meantime" / "stores" / "sqlite"
SOURCE = "\n".join(file.read_text() for file in sorted(HERE.glob("*.py")))
IN = r"{} IN\s*\(([^()]*)\)"


def words(text: str) -> set[str]:
    return set(re.findall(r"'(\w+)'", text))


CHECKED = {
    ("tasks", "status"): Status,
    ("notices", "state"): NoticeState,
    ("schedules", "state"): ScheduleState,
}


@pytest.fixture
def schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        yield db


@pytest.mark.parametrize(("table", "column"), CHECKED)
def test_checks_list_the_kernels_values(schema: sqlite3.Connection, table: str, column: str):
    (text,) = schema.execute("SELECT sql FROM sqlite_schema WHERE name = ?", [table]).fetchone()
    (check,) = re.findall(rf"^ +{column} .* CHECK \(((?:[^()]|\([^()]*\))*)\)", text, re.MULTILINE)
    assert words(check) == set(CHECKED[table, column])


@pytest.mark.parametrize("name", ["insert_task", "update_task", "insert_notice", "insert_event"])
def test_a_row_of_a_task_is_checked_without_a_table_of_its_own(schema: sqlite3.Connection, name: str):
    """SQLite fills one for each IN list of more than two values, for every statement that checks it."""
    statement = queries()[name]
    steps = schema.execute(f"EXPLAIN {statement}", values(statement)).fetchall()
    assert steps
    assert "OpenEphemeral" not in [step[1] for step in steps]


@pytest.mark.parametrize("name", queries())
def test_every_statement_fits_the_schema(schema: sqlite3.Connection, name: str):
    """An index that a statement names, and cannot use, is refused when the statement is prepared."""
    statement = queries()[name]
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    schema.execute(f"EXPLAIN {statement}", [None] * (max(numbered) if numbered else statement.count("?")))


def test_statuses_in_the_queries_are_the_active_or_the_ended_ones():
    for name, sql in queries().items():
        for listed in re.findall(IN.format("status"), sql):
            assert words(listed) in (set(ACTIVE), set(ENDED)), name


def values(statement: str) -> list[None]:
    numbered = [int(number) for number in re.findall(r"\?(\d)", statement)]
    return [None] * (max(numbered) if numbered else statement.count("?"))


@pytest.mark.parametrize("name", queries())
def test_every_query_fits_the_schema(schema: sqlite3.Connection, name: str):
    """An index that a statement names must be usable for it: its condition has to be in the statement."""
    statement = queries()[name]
    assert schema.execute(f"EXPLAIN {statement}", values(statement)).fetchall()


def test_every_query_is_used():
    unused = [name for name in queries() if f'"{name}"' not in SOURCE]
    assert unused == []


def test_every_query_that_is_used_exists():
    used = set(re.findall(r'SQL\["(\w+)"\]', SOURCE)) | set(re.findall(r'telling\.changed, "(\w+)"', SOURCE))
    assert used
    assert used <= set(queries())
