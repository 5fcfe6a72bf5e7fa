"""Answers that hardly ever come, in the words of each dialect: races, limits and bad values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from meantime import InvalidInput, RetryNotSupported
from meantime.dialects import dialect
from meantime.dialects.llxprt import llxprt_texts, message_bus
from meantime.kernel.change import Disposition
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import (
    Cancelled,
    Completed,
    Event,
    Failed,
    Lost,
    Outcome,
    Output,
    Progress,
    Run,
    Task,
    TimedOut,
    Work,
)
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Offer, Problem, Said, Tool

NOW = 200.0
SESSIONS = ["background", "asyncagents"]  # the dialects that share their words


def task(status: Status = Status.RUNNING, outcome: Outcome | None = None, **fields: Any) -> Task:
    ended = None if outcome is None else 190.0
    run = Run(queued_at=100.0, started_at=100.0, ended_at=ended, duration=ended and 90.0)
    given = {"id": "t_abcdefgh12", "work": Work("agent", "explore", {"prompt": "look"}), **fields}
    return Task(thread="chat", status=status, run=run, outcome=outcome, **given)


def tool(name: str, called: str, offer: Offer | None = None) -> Tool:
    return next(tool for tool in dialect(name).tools(offer or Offer()) if tool.name == called)


def said(name: str, called: str, ask: Ask, answer: Answer) -> Said:
    return tool(name, called).say(ask, answer)


def asked(name: str, called: str, offer: Offer | None = None, **arguments: Any) -> Any:
    """The ask of a call with these arguments."""
    found = tool(name, called, offer)
    return found.ask(msgspec.convert(arguments, found.takes))


FAILED = task(Status.FAILED, Failed("It broke."))
RACED = Answer(now=NOW, tasks=[FAILED], dispositions=[Disposition.APPLIED])  # it ended before the cancel


# -- a cancel that comes too late, or that finds nothing


@pytest.mark.parametrize("name", SESSIONS)
def test_a_task_that_ended_before_its_cancel_is_not_called_cancelled(name: str):
    text = said(name, f"{name}_cancel", asks.Cancel(ref=FAILED.id), RACED).text
    assert text.endswith("ended before it could be cancelled: it is error.")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_cancel_of_everything_that_finds_nothing_says_so(name: str):
    answer = said(name, f"{name}_cancel", asks.CancelAll(), Answer(now=NOW))
    assert (answer.text, answer.data) == ("No running background tasks to cancel.", {"tasks": []})


def test_llxprt_refuses_a_cancel_that_came_too_late():
    end = next(one for one in dialect("llxprt").commands() if one.name == "task end")
    answer = end.say(asks.Cancel(ref=FAILED.id), RACED)
    assert (answer.text, answer.code) == ("Failed to cancel task: abcdefgh", "not_cancelled")


def test_jaato_says_that_a_task_was_left_behind():
    left = task(Status.CANCELLED, Cancelled("user", abandoned=True))
    cancel = next(one for one in dialect("jaato").commands() if one.name == "cancel")
    answer = cancel.say(
        asks.Cancel(ref=left.id), Answer(now=NOW, tasks=[left], dispositions=[Disposition.APPLIED])
    )
    assert answer.text == "Task 't_abcdefgh12' would not stop and was left behind."


# -- a list and a wait that are cut


@pytest.mark.parametrize("name", SESSIONS)
def test_a_list_that_is_cut_says_so(name: str):
    listed = asks.List(limit=2)
    both = Answer(now=NOW, tasks=[task(), task(id="t_zyxwvuts12")])
    assert "Only the newest 2 are shown." in said(name, f"{name}_list", listed, both).text
    assert "Only the newest" not in said(name, f"{name}_list", asks.List(limit=3), both).text


def test_a_wait_shows_what_ended_and_that_the_others_go_on():
    done = task(Status.COMPLETED, Completed("found it"), id="t_zyxwvuts12")
    answer = said("meantime", "wait", asks.Wait(refs=()), Answer(now=NOW, tasks=[done, task()]))
    assert "found it" in answer.text
    assert len(answer.reads) == 1, "only an ending counts as read"
    assert answer.text.splitlines()[-1].startswith("You are told when they end.")


def test_a_wait_has_room_for_one_long_ending_and_a_line_for_the_next():
    long = [task(Status.COMPLETED, Completed("x" * 45_000), id=f"t_zyxwvuts{n}") for n in range(2)]
    answer = said("meantime", "wait", asks.Wait(refs=()), Answer(now=NOW, tasks=long))
    assert len(answer.text) < 60_000
    assert len(answer.reads) == 1, "the other is told by its notice"


# -- what a task says of itself


@pytest.mark.parametrize("name", SESSIONS)
def test_progress_without_tools_is_shown_by_its_words(name: str):
    busy = task(progress=Progress(phase="indexing", message="3 of 9", updated_at=150.0))
    text = said(name, f"{name}_output", asks.Read(ref=busy.id), Answer(now=NOW, tasks=[busy])).text
    assert "Tool calls: 0\nProgress: indexing 3 of 9\n" in text
    assert "Recent tools" not in text


def test_the_output_of_a_command_is_what_it_printed():
    command = task(Status.FAILED, Failed("Exit code 2."), work=Work("shell", "make"))
    answer = Answer(now=NOW, tasks=[command], output=Output(command, "make: *** Error 2"))
    text = said("meantime", "output", asks.Read(ref=command.id), answer).text
    assert "make: *** Error 2" in text
    assert "Exit code 2." not in text.partition("\n")[2], "its ending is in the first line"


@pytest.mark.parametrize(
    ("status", "outcome", "error"),
    [
        (Status.TIMED_OUT, TimedOut(30.0), "It did not end within 30 s."),
        (Status.LOST, Lost("The process is gone."), "The process is gone."),
        (Status.FAILED, Failed("It broke."), "It broke."),
    ],
)
def test_psi_shows_the_error_of_every_ending(status: Status, outcome: Outcome, error: str):
    ended = task(status, outcome)
    answer = said("psi", "inspect_job", asks.Read(ref=ended.id), Answer(now=NOW, tasks=[ended]))
    assert answer.data["error"] == error
    assert f"Error: {error}" in answer.text


def test_llxprt_names_no_error_for_a_task_that_has_none():
    assert llxprt_texts.error(task()) == ""
    assert llxprt_texts.error(task(Status.COMPLETED, Completed("found it"))) == ""
    assert llxprt_texts.error(task(Status.TIMED_OUT, TimedOut(30.0))) == "Timed out after 30 seconds."


def test_the_message_bus_carries_agents_only():
    event = Event("submitted", "t_abcdefgh12", "chat", 1, Status.RUNNING, 100.0)
    carried = message_bus.message(event, task())
    assert carried is not None
    assert carried["type"] == message_bus.LAUNCHED
    assert message_bus.message(event, task(work=Work("shell", "make"))) is None


# -- values that a model gets wrong


def test_psi_refuses_to_retry():
    problem = Problem(tool="run_tool", error=RetryNotSupported())
    answer = dialect("psi").problem(problem)
    assert (answer.text, answer.code) == ("Manual retry not supported.", "retry_not_supported")


@pytest.mark.parametrize("arguments", [{}, {"command": 5}, {"command": "ls", "shell": "zsh"}])
def test_psi_says_what_a_command_takes(arguments: dict[str, Any]):
    with pytest.raises(InvalidInput, match="shell takes"):
        asked("psi", "run_tool", tool="shell", arguments=arguments)


def test_jaato_says_that_a_folder_is_a_text():
    with pytest.raises(InvalidInput, match='"cwd" is the path of a folder, not int'):
        asked(
            "jaato",
            "startBackgroundTask",
            plugin_name="cli",
            tool_name="runCommand",
            arguments={"command": "ls", "cwd": 5},
        )


def test_without_background_jaato_waits_for_a_command_as_long_as_it_takes():
    ask = asked("jaato", "runCommand", Offer(background=False), command="make")
    assert (ask.background, ask.threshold, ask.timeout) == (False, None, -1)
