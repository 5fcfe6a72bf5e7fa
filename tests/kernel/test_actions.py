"""Which actions on a task are legal, and why the others are not."""

from __future__ import annotations

import pytest

from meantime.kernel.actions import ActionFacts, actions
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task, Work

from .make import make_task

AGENT = Work("agent", "explore")
TALKS = ActionFacts(resumes=True, talks=True, takes_input=True, session="s-1")


def reason(name: str, task: Task, facts: ActionFacts) -> str:
    (found,) = [one for one in actions(task, facts) if one.name == name]
    assert found.legal is (not found.reason)
    return found.reason


@pytest.mark.parametrize("name", ["cancel", "answer", "resume", "fork", "send", "clear", "purge"])
def test_a_call_that_runs_inline_is_promoted_first(name: str):
    inline = ActionFacts(resumes=True, talks=True, takes_input=True, session="s-1", inline=True)
    assert reason(name, make_task(work=AGENT), inline) == "It is a call that runs inline: promote it first."
    assert reason("promote", make_task(work=AGENT), inline) == ""


def test_a_task_is_promoted_once():
    assert reason("promote", make_task(), ActionFacts()) == "It is a task already."


@pytest.mark.parametrize(
    ("status", "follow_up", "why"),
    [
        (Status.RUNNING, "", ""),
        (Status.RUNNING, "more", ""),
        (Status.CANCELLING, "", "It is being cancelled. Resume it then."),
        (Status.WAITING, "more", "A follow-up is queued already, which comes next."),
        (Status.COMPLETED, "", "It has ended: completed. Use resume to go on with it."),
    ],
)
def test_an_agent_is_sent_text_until_it_has_ended(status: Status, follow_up: str, why: str):
    assert reason("send", make_task(status, work=AGENT, follow_up=follow_up), TALKS) == why


@pytest.mark.parametrize(
    ("status", "given", "why"),
    [
        (Status.QUEUED, {"open_stdin": True}, "It has not started yet."),
        (Status.RUNNING, {"open_stdin": True}, ""),
        (Status.RUNNING, {"pty": True}, ""),
        (Status.RUNNING, {}, "Its stdin is closed: it was started without open_stdin or pty."),
        (Status.RUNNING, None, "Its stdin is closed: it was started without open_stdin or pty."),
    ],
)
def test_a_command_is_sent_input_while_its_stdin_is_open(status: Status, given: object, why: str):
    task = make_task(status, work=Work("shell", "cat", given))  # type: ignore[arg-type]
    assert reason("send", task, ActionFacts(takes_input=True)) == why


def test_a_fork_needs_a_conversation():
    silent = ActionFacts(resumes=True, talks=True)
    assert "wait until it has begun" in reason("fork", make_task(Status.QUEUED, work=AGENT), silent)
    assert "never had a conversation" in reason("fork", make_task(Status.FAILED, work=AGENT), silent)
    assert reason("fork", make_task(work=AGENT), TALKS) == ""


def test_a_resume_needs_an_ending_and_a_session():
    assert "Use send to add to it" in reason("resume", make_task(work=AGENT), TALKS)
    assert "Wait for its ending." in reason("resume", make_task(work=AGENT), ActionFacts(resumes=True))
    assert "never had a session" in reason("resume", make_task(Status.FAILED, work=AGENT), TALKS)
    assert reason("resume", make_task(Status.FAILED, work=AGENT, session="s-1"), TALKS) == ""
