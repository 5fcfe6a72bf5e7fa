"""The judge of MCP calls notices endings that are not theirs."""

from __future__ import annotations

from typing import Any

import pytest

from .toolcalls import wrong_ending

pytestmark = pytest.mark.faults


def seen(kind: str, status: str, result: Any = None, session: str | None = None) -> dict[str, Any]:
    return {
        "id": "a-1.1",
        "kind": kind,
        "status": status,
        "result": result,
        "session": session,
        "outcome": "",
    }


@pytest.mark.parametrize(
    ("ending", "ran"),
    [
        (seen("echo", "completed", "b-1.1"), True),  # another's answer
        (seen("echo", "completed", "a-1.1"), False),  # an answer of nobody
        (seen("gate", "failed"), True),  # it ran, so nobody knows
        (seen("task", "lost", session="tasks:x"), True),  # it could have been found
        (seen("gate", "cancelled"), True),
        (seen("gate", "running"), True),
        (seen("crash", "completed", "x"), True),
    ],
)
def test_a_wrong_ending_is_noticed(ending: dict[str, Any], ran: bool):
    assert list(wrong_ending(ending, {"a-1.1"} if ran else set()))


@pytest.mark.parametrize(
    "ending",
    [
        seen("echo", "completed", "a-1.1"),
        seen("task", "completed", "done a-1.1", "tasks:x"),
        seen("gate", "lost"),
        seen("hang", "cancelled"),
        seen("crash", "lost"),
    ],
)
def test_a_right_one_is_not(ending: dict[str, Any]):
    assert not list(wrong_ending(ending, {"a-1.1"}))
