"""A framework's agent as a background task: the same checks for every adapter.

Each is given a `TaskSite`. The guide's table says which abilities a framework lacks, and that is what is
checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from guide_table import rows
from tests.waiting import LIMIT, until_async

from meantime import Agent, Handle, InvalidInput, Meantime, PythonAgent, Status, Task, Thread
from meantime.app.system_clock import SystemClock
from meantime.integrations.loops.session_host import PythonSessionHost
from meantime.kernel.budgets import Budget
from meantime.kernel.lines import Kind
from meantime.kernel.questions import Question
from meantime.testing import FakeClock
from meantime.testing.suite.patience import within
from meantime.testing.talk import ModelRequest, ToolCall


class Work:
    """Functions that a site makes tools of its framework."""

    def __init__(self) -> None:
        self.digging, self.may_end = asyncio.Event(), asyncio.Event()

        def look(at: str) -> str:
            """Looks at something."""
            return f"{at} is fine"

        def deploy(to: str) -> str:
            """Deploys. A person has to allow it."""
            return f"deployed to {to}"

        async def dig(where: str) -> str:
            """Digs until it may end."""
            self.digging.set()
            await self.may_end.wait()
            return f"dug in {where}"

        self.look, self.deploy, self.dig = look, deploy, dig


class TaskSite(Protocol):
    requests: list[ModelRequest]
    work: Work
    framework: str  # in the guide's table
    models: list[str]  # the names of the models that were asked; "" is the agent's own

    def agent(self, *steps: Any) -> Any:
        """Its model follows the steps; its tools are those of `work`, and `deploy` needs a permission."""
        ...

    def asker(self, *steps: Any) -> Any:
        """As `agent`; its one tool `whoami` answers with the `user` among its deps, as the framework gives
        them to a tool."""
        ...

    def pupil(self) -> Any:
        """Its model does what the prompts of the session host suite ask for."""
        ...

    def named(self, tool: str) -> str:
        """The tool as the framework calls it."""
        ...


class Fixture:
    def __init__(self, site: TaskSite, folder: Path) -> None:
        self.site = site
        self.row = rows()[site.framework]
        self._folder = folder

    def opened(self, agent: Any, clock: FakeClock | None = None, **settings: Any) -> Any:
        given = PythonAgent(agent, **settings) if settings else agent
        return Meantime.open(self._folder / "work.db", agents={"it": given}, clock=clock)

    async def ended(self, *steps: Any, **settings: Any) -> tuple[Task, list[str]]:
        """A task until its end, and the names of the tools that it called."""
        async with self.opened(self.site.agent(*steps), **settings) as mt:
            thread = mt.thread("t")
            task = await thread.start(Agent("it", "look around"))
            (ended,) = await within(thread.wait(task))
            return ended, [line.tool for line in await thread.lines(task) if line.kind is Kind.CALL]


async def question_of(mt: Meantime, id: str) -> Question:
    """As soon as the task asks."""

    async def question() -> Question | None:
        task = await mt.get(id)
        assert not task.ended, task.outcome
        return task.question

    found = await until_async(question, "the task asks")
    assert found is not None
    return found


def looks(count: int) -> list[ToolCall]:
    return [ToolCall("look", {"at": str(n)}, f"call-{n}") for n in range(count)]


# -- what it does is seen and counted


async def words_and_tool_calls_are_lines_and_tokens_count(fixture: Fixture) -> None:
    look = fixture.site.named("look")
    async with fixture.opened(fixture.site.agent(ToolCall("look", {"at": "x"}), "all is well")) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("it", "look around"))
        assert await task.result(LIMIT) == "all is well"
        lines = [(line.role, line.kind, line.tool, line.text) for line in await thread.lines(task)]
        assert lines == [
            ("user", Kind.TEXT, "", "look around"),
            ("assistant", Kind.CALL, look, ""),
            ("tool", Kind.RESULT, look, "x is fine"),
            ("assistant", Kind.TEXT, "", "all is well"),
        ]
        progress = (await task.get()).progress
        assert progress is not None
        assert progress.turns == 2
        assert progress.tokens == 20


async def a_budget_of_tool_calls_ends_it(fixture: Fixture) -> None:
    ended, calls = await fixture.ended(*looks(20), budget=Budget(tool_calls=3), last_turn=0)
    assert ended.status is Status.FAILED
    assert "tool calls" in str(ended.outcome)
    assert len(calls) <= 4, "it went on"


async def a_budget_of_tokens_ends_it(fixture: Fixture) -> None:
    ended, calls = await fixture.ended(*looks(20), budget=Budget(tokens=25), last_turn=0)
    assert ended.status is Status.FAILED
    assert "tokens" in str(ended.outcome)
    assert len(calls) <= 4, "it went on"


async def a_budget_of_cost_counts_or_is_refused(fixture: Fixture) -> None:
    if not fixture.row.has(fixture.row.cost):
        with pytest.raises(InvalidInput, match="does not report a cost"):
            await fixture.ended("ok", budget=Budget(cost=1.0))
        return
    ended, _ = await fixture.ended("ok", "and once more", budget=Budget(cost=1e-9), last_turn=0)
    assert ended.progress is not None
    assert ended.progress.cost > 0


async def the_same_call_again_and_again_is_a_loop(fixture: Fixture) -> None:
    same = [ToolCall("look", {"at": "x"}, f"call-{n}") for n in range(20)]
    ended, calls = await fixture.ended(*same, repeats=3, last_turn=0)
    assert ended.status is Status.FAILED
    assert "3 times in a row" in str(ended.outcome)
    assert len(calls) <= 4, "it went on"


async def a_tool_that_says_nothing_for_too_long_is_a_stall(fixture: Fixture) -> None:
    site = fixture.site
    clock, agent = FakeClock(), site.agent(ToolCall("dig", {"where": "here"}), "never")
    async with fixture.opened(agent, clock, stall=60.0, on_stall="stop", last_turn=0) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("it", "dig"))
        await digs(site, thread, task)
        await clock.advance(60.0)
        (ended,) = await within(thread.wait(task))
    assert ended.status is Status.FAILED
    assert "reported nothing" in str(ended.outcome)


async def digs(site: TaskSite, thread: Thread, task: Handle) -> None:
    """Its tool works, and its line is there."""
    await within(site.work.digging.wait())

    async def is_last() -> bool:
        return (await thread.lines(task))[-1].tool == site.named("dig")

    await until_async(is_last, "the call is a line", lambda: thread.lines(task))


# -- stopped, and gone on with


async def a_cancel_stops_it_and_a_resume_goes_on(fixture: Fixture) -> None:
    site = fixture.site
    async with fixture.opened(site.agent(ToolCall("dig", {"where": "here"}), "I was interrupted")) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("it", "dig"))
        await digs(site, thread, task)
        await thread.cancel(task)
        (ended,) = await within(thread.wait(task))
        assert ended.status is Status.CANCELLED
        again = await thread.resume(task.id, "what happened?")
        assert await again.result(LIMIT) == "I was interrupted"
        assert site.requests[-1].prompts[-1].endswith("what happened?")


async def a_resume_and_a_fork_go_on_with_all_that_was_said(fixture: Fixture) -> None:
    async with fixture.opened(fixture.site.pupil()) as mt:
        first = await mt.thread("t").start(Agent("it", "say one"))
        assert await first.result(LIMIT) == "one"
    async with fixture.opened(fixture.site.pupil()) as mt:
        again = await mt.thread("t").resume(first.id, "say two")
        assert await again.result(LIMIT) == "two"
        fork = await mt.thread("t").fork(first.id, "recall")
        assert await fork.result(LIMIT) == "one two"


# -- spoken to


async def a_message_is_read_while_it_works(fixture: Fixture) -> None:
    site = fixture.site
    agent = site.agent(ToolCall("dig", {"where": "here"}), "done, and hurried")
    async with fixture.opened(agent) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("it", "dig"))
        await within(site.work.digging.wait())
        await thread.send(task, "hurry")
        site.work.may_end.set()
        said = await task.result(LIMIT)
        assert said == "done, and hurried"
        read = site.requests[-1]
        assert "hurry" in "\n".join([*read.prompts, read.instructions])


async def a_permission_makes_the_task_wait(fixture: Fixture) -> None:
    site, text = fixture.site, ""
    for answer, allowed in (("allow", True), ("deny", False)):
        agent = site.agent(ToolCall("deploy", {"to": "prod"}, f"call-{answer}"), "done")
        async with fixture.opened(agent) as mt:
            thread = mt.thread("t")
            task = await thread.start(Agent("it", "deploy it"))
            assert "deploy" in (await question_of(mt, task.id)).text
            assert (await task.get()).status is Status.WAITING
            await mt.answer(task.id, answer)
            assert await task.result(LIMIT) == "done"
            text = "\n".join(line.text for line in await thread.lines(task) if line.kind is Kind.RESULT)
            assert ("deployed to prod" in text) is allowed, text


async def an_error_of_the_model_fails_it_with_its_words(fixture: Fixture) -> None:
    ended, _ = await fixture.ended(ValueError("no such plan"))
    assert ended.status is Status.FAILED
    assert "no such plan" in str(ended.outcome)


async def settings_restrict_its_tools_or_are_refused(fixture: Fixture) -> None:
    site = fixture.site
    if not fixture.row.has(fixture.row.tools):
        with pytest.raises(InvalidInput, match="fixed when the agent is made"):
            await fixture.ended("ok", tools=())
        return
    ended, _ = await fixture.ended("ok", tools=())
    assert ended.status is Status.COMPLETED
    assert not {"look", "deploy", "dig"} & set(site.requests[0].tools)


async def settings_choose_its_model_or_are_refused(fixture: Fixture) -> None:
    if not fixture.row.has(fixture.row.model):
        with pytest.raises(InvalidInput, match="fixed when the agent is made"):
            await fixture.ended("ok", model="another")
        return
    await fixture.ended("ok", model="another")
    assert fixture.site.models == ["another"]


async def deps_reach_its_tools_or_are_refused(fixture: Fixture) -> None:
    given = {"user": "ann"}
    if not fixture.row.has(fixture.row.deps):
        ended, _ = await fixture.ended("ok", deps=given)
        assert ended.status is Status.FAILED
        assert "takes no deps" in str(ended.outcome)
        return
    async with fixture.opened(fixture.site.asker(ToolCall("whoami", {}), "ok"), deps=given) as mt:
        task = await mt.thread("t").start(Agent("it", "who?"))
        assert await task.result(LIMIT) == "ok"
        lines = await mt.thread("t").lines(task)
        assert [line.text for line in lines if line.kind is Kind.RESULT] == ["ann"]


async def deps_that_must_be_a_mapping_are_refused_otherwise(fixture: Fixture) -> None:
    if fixture.row.deps.startswith("a mapping"):
        ended, _ = await fixture.ended("ok", deps=3)
        assert ended.status is Status.FAILED
        assert "mapping" in str(ended.outcome)


Check = Callable[[Fixture], Awaitable[None]]
TASK_CHECKS: tuple[Check, ...] = (
    words_and_tool_calls_are_lines_and_tokens_count,
    a_budget_of_tool_calls_ends_it,
    a_budget_of_tokens_ends_it,
    a_budget_of_cost_counts_or_is_refused,
    the_same_call_again_and_again_is_a_loop,
    a_tool_that_says_nothing_for_too_long_is_a_stall,
    a_cancel_stops_it_and_a_resume_goes_on,
    a_resume_and_a_fork_go_on_with_all_that_was_said,
    a_message_is_read_while_it_works,
    a_permission_makes_the_task_wait,
    an_error_of_the_model_fails_it_with_its_words,
    settings_restrict_its_tools_or_are_refused,
    settings_choose_its_model_or_are_refused,
    deps_reach_its_tools_or_are_refused,
    deps_that_must_be_a_mapping_are_refused_otherwise,
)


def hosted(agent: Any) -> PythonSessionHost:
    """A host of one agent, for the session host suite."""
    host = PythonSessionHost(SystemClock())
    host.add("agent", agent)
    return host
