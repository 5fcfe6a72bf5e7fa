"""What goose's database says of its sessions, and what is done without one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from meantime.surfaces.caller import goose_sessions
from meantime.surfaces.caller.caller_thread import GOOSE, own_thread

NOTICE = '[{"type":"text","text":"told: <task-notification id=\\"t_1.1\\" task=\\"t_1\\">"}]'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A session, its subagent, and that one's, as goose 1.52 keeps them."""
    environ = {"HOME": str(tmp_path), GOOSE: "20261116_3"}
    path = Path(goose_sessions.database(environ))
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT)")
        made.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, content_json TEXT)")
        rows = [("20261116_1", None), ("20261116_2", "20261116_1"), ("20261116_3", "20261116_2")]
        made.executemany("INSERT INTO sessions VALUES (?, ?)", rows)
        made.execute("INSERT INTO messages (session_id, content_json) VALUES ('20261116_1', ?)", [NOTICE])
    return environ


def test_a_subagent_belongs_to_the_session_at_its_root(environ: dict[str, str]):
    assert own_thread(environ) == "mcp-20261116_1"
    assert own_thread({**environ, GOOSE: "20261116_9"}) == "mcp-20261116_9"
    assert own_thread({**environ, "MEANTIME_THREAD": "conv-1"}) == "conv-1"


def test_sessions_that_name_each_other_as_their_parents_come_to_an_end(environ: dict[str, str]):
    with closing(sqlite3.connect(goose_sessions.database(environ))) as made, made:
        made.execute("UPDATE sessions SET parent_session_id = '20261116_3' WHERE id = '20261116_1'")
    assert goose_sessions.root(environ[GOOSE], environ).startswith("20261116_")


@pytest.mark.parametrize("named", ["a-session-of-another-program", "20261116", "_1", "20261116_x", ""])
def test_the_variable_of_another_program_is_not_a_session_of_goose(environ: dict[str, str], named: str):
    assert own_thread({**environ, GOOSE: named}) == "cli"


def test_a_notice_is_looked_for_in_its_session(environ: dict[str, str]):
    path = goose_sessions.database(environ)
    assert goose_sessions.found(path, "20261116_1", ["t_1.1", "t_2.1", "t_1"]) == {"t_1.1"}
    assert goose_sessions.found(path, "20261116_2", ["t_1.1"]) is None  # nothing is known of this one


@pytest.mark.parametrize("made", ["CREATE TABLE sessions (id TEXT)", None])
def test_without_a_database_that_can_be_read_each_session_stands_for_itself(tmp_path: Path, made: str | None):
    """An older goose has no parents, and none of that at all where there is no database."""
    environ = {"GOOSE_PATH_ROOT": str(tmp_path), GOOSE: "20261116_3"}
    path = Path(goose_sessions.database(environ))
    path.parent.mkdir(parents=True)
    if made:
        with closing(sqlite3.connect(path)) as one, one:
            one.execute(made)
    assert own_thread(environ) == "mcp-20261116_3"
    assert goose_sessions.found(str(path), "20261116_3", ["t_1.1"]) is None
