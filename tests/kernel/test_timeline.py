"""Where the time of a task went, made from the lines, questions and children that are recorded."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Kind, Line, PlacedLine
from meantime.kernel.model import Failed, Run, Task, Work
from meantime.kernel.questions import Question, Reply
from meantime.kernel.timeline import MOST_BELOW, Span, Timeline, key_argument, timeline

from .make import make_task

NOW = 200.0


def agent(status: Status = Status.RUNNING, **fields: Any) -> Task:
    ended = None if status is Status.RUNNING else 160.0
    run = Run(queued_at=100.0, started_at=110.0, ended_at=ended)
    return make_task(status, **{"work": Work("agent", "review", {"prompt": "look"}), "run": run, **fields})


def said(*lines: Line) -> list[PlacedLine]:
    return [PlacedLine(100 * place, line) for place, line in enumerate(lines, 1)]


def call(at: float, id: str, tool: str = "grep", **arguments: str) -> Line:
    return Line(role="assistant", kind=Kind.CALL, tool=tool, call=id, arguments=arguments, at=at)


def result(at: float, id: str, text: str = "found", *, failed: bool = False) -> Line:
    return Line(role="tool", kind=Kind.RESULT, call=id, text=text, failed=failed, at=at)


def by_kind(found: Timeline, kind: str) -> list[Span]:
    return [span for span in found.spans if span.kind == kind]


TWO_TURNS = said(
    Line(role="user", text="look", at=110.0),
    call(114.0, "a", pattern="refresh"),
    call(114.5, "b", tool="read", path="src/auth.py"),
    result(116.0, "a"),
    result(118.0, "b", "no such file", failed=True),
    Line(role="assistant", text="done", at=121.0),
)


def test_a_turn_of_the_model_has_the_calls_that_it_made():
    found = timeline([agent()], TWO_TURNS, [], NOW)
    first, second = [span for span in by_kind(found, "turn") if span.end is not None]
    assert (first.name, first.start, first.end) == ("Turn 1", 110.0, 118.0)
    assert (second.start, second.end) == (118.0, 121.0)  # it begins when every result is there
    grep, read = by_kind(found, "tool")
    assert (grep.name, grep.detail, grep.error) == ("grep", "refresh", False)
    assert (grep.start, grep.end) == (114.0, 116.0)
    assert (read.parent, read.error, read.note) == (first.id, True, "no such file")
    model = by_kind(found, "model")[0]
    assert (model.parent, model.start, model.end) == (first.id, 110.0, 114.5)


def test_what_goes_on_has_no_end_and_ends_with_its_run():
    lines = said(Line(role="user", text="look", at=110.0), call(114.0, "a"))
    running = timeline([agent()], lines, [], NOW)
    assert by_kind(running, "tool")[0].end is None
    assert by_kind(running, "turn")[0].end is None
    over = agent(Status.FAILED, outcome=Failed("it broke"))
    ended = timeline([over], lines, [], NOW)
    tool, turn = by_kind(ended, "tool")[0], by_kind(ended, "turn")[0]
    assert (tool.end, tool.note, turn.error) == (160.0, "no result", True)


def test_a_model_that_has_not_answered_yet_is_an_open_turn():
    found = timeline([agent()], said(Line(role="user", text="look", at=110.0)), [], NOW)
    (model,) = by_kind(found, "model")
    assert (model.start, model.end) == (110.0, None)
    assert found.totals.model == 90.0


def test_waiting_for_a_slot_and_for_an_answer_are_spans():
    reply = Reply(
        question="q", text="", choices=("allow",), allows=True, by="user", at=130.0, run=1, asked_at=115.0,
        asked="May I?",
    )  # fmt: skip
    lines = said(Line(role="user", text="look", at=110.0), call(114.0, "a", tool="bash"), result(132.0, "a"))
    found = timeline([agent(answers=(reply,))], lines, [], NOW)
    (queue,), (wait,) = by_kind(found, "queue"), by_kind(found, "wait")
    assert (queue.start, queue.end) == (100.0, 110.0)
    assert (wait.detail, wait.start, wait.end, wait.note) == ("May I?", 115.0, 130.0, "allowed by you")
    assert wait.parent == by_kind(found, "tool")[0].id
    totals = found.totals
    assert (totals.queue, totals.wait, totals.tool) == (10.0, 15.0, 3.0)  # none counts twice


def test_an_open_question_waits():
    question = Question(id="q", text="Which key?", asked_at=120.0)
    found = timeline([agent(Status.WAITING, question=question)], [], [], NOW)
    (wait,) = by_kind(found, "wait")
    assert (wait.name, wait.detail, wait.end) == ("waiting for an answer", "Which key?", None)


def test_a_child_is_nested_where_it_was_started_with_its_own_turns_below():
    child = replace(agent(), id="t_child", created_at=115.0, run=Run(queued_at=115.0, started_at=115.0))
    lines = said(*(call(116.0 + at, str(at)) for at in range(2 * MOST_BELOW)))
    found = timeline([agent()], TWO_TURNS, [(child, lines)], NOW)
    (span,) = by_kind(found, "child")
    assert (span.task, span.start, span.end, span.note) == ("t_child", 115.0, None, "running")
    assert span.parent == by_kind(found, "tool")[1].id  # the call that began last before it
    below = [one for one in found.spans if one.id.startswith("t_child.") and one.kind == "tool"]
    assert 0 < len(below) <= MOST_BELOW


def test_a_command_is_one_span_with_its_error():
    work = Work("shell", "", {"command": ["pytest", "-q"]})
    run = Run(queued_at=100.0, started_at=100.0, ended_at=130.0)
    found = timeline([make_task(Status.FAILED, work=work, run=run)], [], [], NOW)
    (span,) = found.spans
    assert (span.kind, span.detail, span.end, span.error) == ("tool", "pytest -q", 130.0, True)


def test_every_run_has_its_spans():
    first = agent(Status.COMPLETED)
    second = replace(agent(), run=Run(number=2, queued_at=170.0, started_at=170.0))
    found = timeline([first, second], [], [], NOW)
    assert [(span.run, span.start) for span in by_kind(found, "tool")] == [(1, 110.0), (2, 170.0)]
    assert (found.started_at, found.ended_at) == (100.0, None)


def test_only_the_newest_spans_are_kept_and_the_others_counted():
    lines = said(*(call(111.0 + at, str(at)) for at in range(50)))
    found = timeline([agent()], lines, [], NOW, most=10)
    assert (len(found.spans), found.folded > 30) == (10, True)
    assert found.spans[-1].start == 160.0


def test_the_argument_that_says_most():
    assert key_argument({"limit": 3, "pattern": "x", "path": "src"}) == "src"
    assert key_argument({"limit": 3, "note": "y"}) == "y"
    assert key_argument({"command": ["ls", "-l"]}) == "ls -l"
    assert key_argument("*** Begin Patch\n+x") == "*** Begin Patch +x"  # a tool that takes a text
    assert key_argument(None) == ""
    assert len(key_argument({"command": "x" * 5_000})) <= 201


def test_a_run_that_was_cancelled_in_the_queue_has_only_waited():
    run = Run(queued_at=100.0, started_at=None, ended_at=130.0)
    found = timeline([agent(Status.CANCELLED, run=run)], [], [], NOW)
    (span,) = found.spans
    assert (span.kind, span.start, span.end) == ("queue", 100.0, 130.0)


def test_words_that_come_during_a_call_begin_no_turn():
    lines = said(
        Line(role="user", text="look", at=110.0),
        call(114.0, "a"),
        Line(role="user", text="and hurry", at=115.0),
        Line(role="system", text="compacted", at=115.5),
        result(116.0, "a", text=""),
        Line(role="assistant", text="done", at=120.0),
    )
    found = timeline([agent(Status.COMPLETED)], lines, [], NOW)
    assert [(turn.start, turn.end) for turn in by_kind(found, "turn")] == [(110.0, 116.0), (116.0, 120.0)]
    assert by_kind(found, "tool")[0].note == ""  # the tool answered nothing


def test_a_result_whose_call_is_older_than_the_lines_that_were_read_is_left_out():
    lines = said(result(112.0, "older"), Line(role="assistant", text="done", at=121.0))
    found = timeline([agent(Status.COMPLETED)], lines, [], NOW)
    assert [span.kind for span in found.spans] == ["queue", "turn", "model"]


def test_a_child_belongs_to_the_turn_where_no_call_was_open_and_to_nothing_before_the_first():
    between = replace(agent(), id="t_between", created_at=120.0)
    early = replace(agent(), id="t_early", created_at=105.0)
    found = timeline([agent(Status.COMPLETED)], TWO_TURNS, [(between, []), (early, [])], NOW)
    parents = {span.task: span.parent for span in by_kind(found, "child")}
    assert parents == {"t_between": by_kind(found, "turn")[1].id, "t_early": None}


def test_an_answer_that_came_at_once_took_no_time():
    reply = Reply(question="q", text="yes", by="rule", at=115.0, run=1, asked_at=115.0, asked="May I?")
    assert timeline([agent(answers=(reply,))], [], [], NOW).totals.wait == 0.0
