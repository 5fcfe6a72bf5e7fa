"""A dialect's texts, without a runtime: values in, values out."""

from __future__ import annotations

from typing import Any, cast

from meantime.kernel.errors import (
    Ambiguous,
    InvalidInput,
    LimitReached,
    MeantimeError,
    NotFound,
    NotResumable,
)
from meantime.kernel.lifecycle import Status
from meantime.kernel.notices import Message
from meantime.ports.dialect import Dialect, Problem, Standing

from .sample_tasks import NOW, RAW, active_tasks, ended_tasks, notices
from .tool_schema_checks import OFFERS

LONGEST_REMINDER = 20_000  # characters


def assert_clean(text: str, where: str) -> None:
    found = [mark for mark in RAW if mark in text]
    assert not found, f"{where} lets {found} of a task's own text through: {text[:200]!r}"


def assert_clean_data(value: Any, where: str) -> None:
    if isinstance(value, str):
        assert_clean(value, f"the data of {where}")
    elif isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            assert_clean_data(key, where)
            assert_clean_data(one, where)
    elif isinstance(value, list | tuple):
        for one in cast("list[Any]", value):
            assert_clean_data(one, where)


async def every_status_has_a_word(dialect: Dialect) -> None:
    assert dialect.name
    for status in Status:
        for run in (1, 2, 7):
            word = dialect.status(status, run)
            assert isinstance(word, str), f"{status} in run {run} has no word"
            assert word, f"{status} in run {run} has no word"


async def every_ending_has_a_message(dialect: Dialect) -> None:
    for notice in notices():
        message = dialect.message(notice)
        where = f"the message for {notice.task.status} in run {notice.run}"
        assert isinstance(message, Message), where
        assert message.role in ("user", "assistant", "tool"), f"{where} has the role {message.role!r}"
        assert message.visible.strip(), f"{where} shows people nothing"
        for part in message.parts:
            assert_clean(part.text, where)
        assert dialect.message(notice) == message, f"{where} is another one the second time"


async def the_reminder_says_what_there_is(dialect: Dialect) -> None:
    assert dialect.reminder(Standing(now=NOW)) == "", "nothing to say is the empty string"
    full = Standing(active=active_tasks(), untold=ended_tasks(), parked=1, now=NOW)
    assert_clean(dialect.reminder(full), "the reminder")
    many = Standing(active=active_tasks() * 100, untold=ended_tasks() * 100, parked=1, now=NOW)
    said = len(dialect.reminder(many))
    assert said <= LONGEST_REMINDER, f"the reminder of many tasks has {said} characters: it is in every turn"


async def every_error_is_a_text_with_a_code(dialect: Dialect) -> None:
    several = ended_tasks()[:2]
    errors: list[MeantimeError] = [
        NotFound.task("t_nothing", "conv-1"),
        Ambiguous("t_", [task.id for task in several]),
        InvalidInput("The arguments are not right."),
        LimitReached("5 of at most 5 agent tasks are running in this thread.", running=5, limit=5),
        NotResumable("This task is currently being resumed.", code="being_resumed"),
        NotResumable("Only completed.", code="not_completed"),
        NotResumable("The session of this task is gone.", code="session_gone"),
        MeantimeError("The call failed.", code="internal"),
    ]
    tools = [tool.name for tool in dialect.tools(OFFERS[0])]
    for error in errors:
        for tool in (*tools, "no_such_tool"):
            said = dialect.problem(Problem(tool=tool, error=error, candidates=several))
            assert said.code, f"{error.code} has lost its code in {tool}"
            assert said.text, f"{error.code} has no text in {tool}"
            assert_clean(said.text, f"the problem {error.code} of {tool}")


async def guidance_names_only_tools_that_are_there(dialect: Dialect) -> None:
    every = [tool.name for tool in dialect.tools(OFFERS[0])]
    assert dialect.guidance([]) == "", "an agent without tools needs no guidance"
    assert isinstance(dialect.guidance(every), str)


CHECKS = (
    every_status_has_a_word,
    every_ending_has_a_message,
    the_reminder_says_what_there_is,
    every_error_is_a_text_with_a_code,
    guidance_names_only_tools_that_are_there,
)
