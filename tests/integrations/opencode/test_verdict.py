"""How a turn ended, by what a server has stored: every way that a real one was seen to write it down."""

from __future__ import annotations

import re
from typing import Any

import pytest

from meantime.integrations.opencode.message_ids import message_id, part_id
from meantime.integrations.opencode.message_lines import lines_of
from meantime.integrations.opencode.message_view import MessageView
from meantime.integrations.opencode.prompt_log import PromptLog
from meantime.integrations.opencode.turn_result import Undecided, verdict
from meantime.kernel.lines import Kind
from meantime.ports.session import Turned

pytestmark = pytest.mark.agents


def step(
    finish: str | None = None, *, completed: bool = True, error: Any = None, text: str = "", **more: Any
):
    info: dict[str, Any] = {"id": "msg_2", "role": "assistant", "parentID": "msg_1", "time": {"created": 1}}
    if completed:
        info["time"]["completed"] = 2
    if finish:
        info["finish"] = finish
    if error:
        info["error"] = error
    parts = [{"id": "prt_1", "type": "text", "text": text}] if text else []
    return {"info": {**info, **more}, "parts": parts}


ABORTED = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}


def test_a_turn_that_is_done_says_its_last_words():
    said = [step("tool-calls", text="I look."), step("stop", text="It is 42.")]
    assert verdict(said) == Turned(text="It is 42.")
    assert verdict([step("tool-calls", text="I look."), step("stop")]) == Turned(text="I look.")


def test_a_turn_that_was_stopped():
    assert verdict([step(error=ABORTED)]) == Turned(stopped=True)
    assert verdict([], problem=ABORTED) == Turned(stopped=True)


def test_stopped_while_it_waited_for_its_provider_it_says_neither():
    """Completed, without a finish and without an error: what it means depends on whether we asked for it."""
    assert verdict([step()], stopping=True) == Turned(stopped=True)
    judged = verdict([step()])
    assert isinstance(judged, Turned)
    assert judged.error
    assert judged.error.code == "interrupted"


def test_a_turn_that_finished_before_the_stop_is_finished():
    assert verdict([step("stop", text="Done.")], stopping=True) == Turned(text="Done.")


def test_a_provider_names_its_wait_in_a_header():
    data = {"message": "no", "statusCode": 429, "responseHeaders": {"retry-after": "7"}}
    judged = verdict([step(error={"name": "APIError", "data": data})])
    assert isinstance(judged, Turned)
    assert judged.error
    assert (judged.error.message, judged.rate_limited, judged.retry_after) == ("no", True, 7)


def test_an_error_that_opencode_calls_retryable_is_tried_again_unless_it_is_about_money():
    """OpenAI answers 404 for models that are there: OpenCode knows that, and says so."""
    data = {"message": "Not Found", "statusCode": 404, "isRetryable": True}
    judged = verdict([step(error={"name": "APIError", "data": data})])
    assert isinstance(judged, Turned)
    assert judged.retryable


def test_what_is_missing_is_no_ending():
    assert verdict([]) is Undecided.UNBEGUN
    assert verdict([step(completed=False)]) is Undecided.BROKEN_OFF
    assert verdict([step("tool-calls")]) is Undecided.BROKEN_OFF


def test_a_refusal_that_ended_the_turn_is_an_error():
    part = {"id": "p", "type": "tool", "tool": "bash", "state": {"status": "error", "error": "rejected"}}
    judged = verdict([{**step("tool-calls"), "parts": [part]}])
    assert isinstance(judged, Turned)
    assert judged.error
    assert judged.error.code == "refused"


def test_a_message_was_seen_when_a_step_answered_to_it_or_to_a_later_one():
    users = [{"info": {"id": f"msg_{n}", "role": "user"}, "parts": [{"id": f"p{n}"}]} for n in (1, 2)]
    empty = step(completed=False, id="msg_3", parentID="msg_2")
    assert not MessageView([*users, empty]).was_seen("msg_1")  # it is there before the model is asked
    answered = MessageView([*users, step("stop", id="msg_3", parentID="msg_2")])
    assert answered.was_seen("msg_1")
    assert answered.was_seen("msg_2")
    early = MessageView([users[0], step("stop", id="msg_3", parentID="msg_1"), users[1]])
    assert early.was_seen("msg_1")
    assert not early.was_seen("msg_2")


def test_ids_are_the_same_for_the_same_notice_and_never_shared_by_sessions():
    one = message_id("ses_1", "t_1.1", 1_794_826_743.516, 7)
    assert one == message_id("ses_1", "t_1.1", 1_794_826_743.516, 7)
    assert one != message_id("ses_2", "t_1.1", 1_794_826_743.516, 7)
    assert re.fullmatch(r"msg_[0-9a-f]{12}[0-9A-Za-z]{14}", one)
    assert part_id("ses_1", "a", 5.0, 1) < part_id("ses_1", "b", 5.0, 2)  # parts are sorted by their ids
    own = "msg_1e402b422001rcwsfriAYt70Cz"  # of OpenCode, at that time
    assert message_id("ses_1", "t_1.1", 1_794_826_744.866, 1)[:16] == own[:16]


def test_what_was_heard_before_a_crash_is_no_news(tmp_path: Any):
    first = PromptLog(tmp_path)
    at = first.first_given("prompt")
    assert first.is_news("prt_1")
    with (tmp_path / "opencode.jsonl").open("ab") as file:
        file.write(b'{"heard": "prt_')  # cut by the crash
    second = PromptLog(tmp_path)
    assert second.was_given("prompt")
    assert second.first_given("prompt") == at
    assert not second.is_news("prt_1")
    assert second.is_news("prt_2")


def test_a_tool_is_a_call_and_later_its_result():
    state = {"status": "running", "input": {"command": "ls"}, "time": {"start": 1000}}
    part = {"id": "prt_1", "type": "tool", "tool": "bash", "callID": "c", "state": state}
    (call,) = lines_of("assistant", part)
    assert (call.kind, call.tool, call.arguments) == (Kind.CALL, "bash", {"command": "ls"})
    done = {**part, "state": {**state, "status": "completed", "output": "a file"}}
    again, result = lines_of("assistant", done)
    assert again.id == call.id
    assert (result.kind, result.text, result.id) == (Kind.RESULT, "a file", "prt_1.result")
    assert list(lines_of("assistant", {"id": "prt_2", "type": "text", "text": "half a"})) == []
