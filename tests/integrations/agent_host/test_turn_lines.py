"""Pieces, calls and results become the lines of a turn."""

from __future__ import annotations

import pytest

from meantime.integrations.agent_host.turn_lines import TurnLines
from meantime.kernel.lines import Kind
from meantime.testing.session_host.host_fixture import Recorder


class Written:
    def __init__(self) -> None:
        self.recorder = Recorder()
        self.lines = TurnLines(self.recorder)

    @property
    def found(self) -> list[tuple[Kind, str]]:
        return [(line.kind, line.text or line.tool) for line in self.recorder.lines]


@pytest.fixture
def written() -> Written:
    return Written()


def test_pieces_are_one_line_when_something_else_comes(written: Written):
    for piece in ("wal", "nut"):
        written.lines.piece(piece)
    assert written.found == []
    assert written.lines.unended == "walnut"
    written.lines.piece("hm", Kind.THOUGHT)
    written.lines.say("hazel")
    assert written.found == [(Kind.TEXT, "walnut"), (Kind.THOUGHT, "hm"), (Kind.TEXT, "hazel")]
    assert written.lines.text == "hazel"


def test_a_thought_is_not_the_last_thing_that_was_said(written: Written):
    written.lines.say("walnut")
    written.lines.think("hm")
    assert written.lines.text == "walnut"


def test_white_space_and_dropped_pieces_get_no_line(written: Written):
    written.lines.piece(" \n")
    written.lines.flush()
    written.lines.piece("an error, and not a word of the agent's")
    assert written.lines.take_pieces() == "an error, and not a word of the agent's"
    written.lines.flush()
    assert written.found == []


def test_a_call_is_told_once_until_its_result(written: Written):
    for _ in range(2):
        written.lines.call("c1", "bash", {"command": "ls"})
    written.lines.result("c1", "a b", failed=True)
    call, result = written.recorder.lines
    assert (call.kind, call.tool, call.call, call.arguments) == (Kind.CALL, "bash", "c1", {"command": "ls"})
    assert (result.kind, result.tool, result.call, result.failed) == (Kind.RESULT, "bash", "c1", True)
    written.lines.call("c1", "read", None)
    assert written.found[-1] == (Kind.CALL, "read"), "a model may use an id again"
