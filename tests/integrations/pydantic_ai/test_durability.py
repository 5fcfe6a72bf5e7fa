"""Durable runs of Pydantic AI agents: what is recorded is not executed again, and nothing is made up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.durable_exec import BaseDurabilityCapability
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.test import TestModel
from tests.waiting import LIMIT

from meantime import InvalidInput, Meantime, Refused, Status, Task, Thread
from meantime.integrations.pydantic_ai import Durability, durable_run

from .durable_owner import MOMENTS
from .scripted import Script, call

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[3]
Tools = dict[str, Callable[..., Any]]


@pytest.fixture
async def mt() -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("steps")


def agent_of(script: Script, *tools: Callable[..., Any], **more: Any) -> Agent[None, Any]:
    return Agent(script.model, name="shop", tools=tools, capabilities=[Durability()], **more)


async def steps(thread: Thread) -> list[Task]:
    return list(reversed(await thread.list("all", history=True, limit=1_000)))


class Till:
    """A tool with an effect."""

    def __init__(self, *problems: Exception) -> None:
        self.charged: list[int] = []
        self._problems = list(problems)

    def charge(self, amount: int) -> str:
        self.charged.append(amount)
        if self._problems:
            raise self._problems.pop()
        return f"charged {amount}"


async def test_it_is_an_engine_of_the_public_interface():
    agent = agent_of(Script())
    assert isinstance(Durability(), BaseDurabilityCapability)
    assert BaseDurabilityCapability.from_agent(agent) is not None


async def test_a_repeated_run_executes_nothing_and_says_the_same(thread: Thread):
    till = Till()
    script = Script(call("charge", amount=5), "All paid.")
    agent = agent_of(script, till.charge)
    said: list[str] = []
    for _ in range(3):
        with durable_run(thread, "order-17"):
            said.append((await agent.run("Order x.")).output)
    assert said == ["All paid."] * 3
    assert till.charged == [5]
    assert len(script.asked) == 2


async def test_each_request_and_call_is_a_task_and_nobody_is_told_of_it(thread: Thread):
    till = Till()
    agent = agent_of(Script(call("charge", amount=5), "All paid."), till.charge)
    with durable_run(thread, "order-17"):
        await agent.run("Order x.")
    found = await steps(thread)
    assert [task.work.name for task in found] == [
        "shop__model.request", "shop__function_toolset__<agent>.call_tool:charge", "shop__model.request",
    ]  # fmt: skip
    assert {task.status for task in found} == {Status.COMPLETED}
    async with thread.turn() as turn:
        assert turn.notices == []
    assert not await thread.reminder()


async def test_names_of_steps_are_pinned(thread: Thread):
    """They are in ledgers: with other names a run that was killed would begin anew."""
    agent = agent_of(Script("Hello."))
    with durable_run(thread, "k"):
        await agent.run("Hi.")
    (step,) = await steps(thread)
    assert step.id == "step-e864e794e703c53e4d3535c21743c52004b53fbf"
    assert step.meta["key"] == "k"
    assert step.meta["run"] == "k:1"


async def test_outside_of_a_durable_run_nothing_is_recorded(thread: Thread):
    till = Till()
    agent = agent_of(Script(call("charge", amount=5), "All paid."), till.charge)
    assert (await agent.run("Order x.")).output == "All paid."
    assert till.charged == [5]
    assert await steps(thread) == []


async def test_a_tool_that_failed_is_not_called_again(thread: Thread):
    till = Till(OSError("no line"))
    script = Script(call("charge", amount=5), "I see.")
    agent = agent_of(script, till.charge)
    with durable_run(thread, "order-17"), pytest.raises(OSError, match="no line"):
        await agent.run("Order x.")
    with durable_run(thread, "order-17"):
        assert (await agent.run("Order x.")).output == "I see."
    assert till.charged == [5]
    (told,) = script.asked[1].results
    assert "failed: " in told
    assert "no line" in told
    assert "Find out what it did" in told


async def test_a_tool_that_may_run_again_is_called_again(thread: Thread):
    till = Till(OSError("no line"))
    script = Script(call("charge", amount=5), "All paid.")
    agent = agent_of(script)
    agent.tool_plain(metadata={"meantime": {"retry": "idempotent"}})(till.charge)
    with durable_run(thread, "order-17"), pytest.raises(OSError, match="no line"):
        await agent.run("Order x.")
    with durable_run(thread, "order-17"):
        assert (await agent.run("Order x.")).output == "All paid."
    assert till.charged == [5, 5]
    assert script.asked[1].results == ["charged 5"]
    assert [task.meta["attempt"] for task in await steps(thread) if "charge" in task.work.name] == [1, 2]


async def test_a_request_that_failed_is_made_again(thread: Thread):
    script = Script(ModelHTTPError(503, "m"), "Hello.")
    agent = agent_of(script)
    with durable_run(thread, "k"), pytest.raises(ModelHTTPError):
        await agent.run("Hi.")
    with durable_run(thread, "k"):
        assert (await agent.run("Hi.")).output == "Hello."


async def test_a_tool_can_be_left_out(thread: Thread):
    till = Till()
    agent = agent_of(Script(call("charge", amount=5), "All paid."))

    @agent.tool_plain(metadata={"meantime": False})
    async def charge(amount: int) -> str:
        return till.charge(amount)

    for _ in range(2):
        with durable_run(thread, "order-17"):
            await agent.run("Order x.")
    assert till.charged == [5, 5]
    assert all("charge" not in task.work.name for task in await steps(thread))


@pytest.mark.parametrize("given", ["idempotent", {"retry": "always"}, True, {"tries": 3}], ids=repr)
async def test_settings_of_a_tool_that_mean_nothing_are_refused(thread: Thread, given: object):
    agent = agent_of(Script(call("charge", amount=5)))
    agent.tool_plain(metadata={"meantime": given})(Till().charge)
    with durable_run(thread, "k"), pytest.raises(UserError, match="'charge'"):
        await agent.run("Order x.")


async def test_another_prompt_under_the_same_key_is_refused(thread: Thread):
    agent = agent_of(Script("Hello."))
    with durable_run(thread, "k"):
        await agent.run("Hi.")
    with durable_run(thread, "k"), pytest.raises(Refused, match="other input") as refused:
        await agent.run("Something else.")
    assert refused.value.code == "another_run"


async def test_instructions_may_have_the_time_in_them(thread: Thread):
    script = Script("Hello.")
    agent = agent_of(script)
    times = iter(("one o'clock", "two o'clock"))
    agent.instructions(lambda: f"It is {next(times)}.")
    for _ in range(2):
        with durable_run(thread, "k"):
            assert (await agent.run("Hi.")).output == "Hello."
    assert len(script.asked) == 1


@pytest.mark.parametrize("key", ["", "x" * 501, 7, "\ud800"], ids=["empty", "long", "number", "surrogate"])
async def test_a_key_that_names_nothing_is_refused(thread: Thread, key: Any):
    with pytest.raises(InvalidInput), durable_run(thread, key):
        pass


async def test_two_that_run_with_one_key_at_once_do_not_execute_twice(thread: Thread):
    script = Script(asyncio.Event(), "Hello.")
    gate = script.steps[0]
    agent = agent_of(script)

    async def run() -> str:
        with durable_run(thread, "k"):
            return (await agent.run("Hi.")).output

    first = asyncio.ensure_future(run())
    await script.waits.wait()
    with pytest.raises(Refused, match="somebody else") as refused:
        await run()
    assert refused.value.code == "already_running"
    gate.set()
    assert await first == "Hello."
    assert len(script.asked) == 1


async def test_a_run_that_was_cancelled_goes_on(thread: Thread):
    script = Script(asyncio.Event(), "Hello.")
    agent = agent_of(script)

    async def run() -> str:
        with durable_run(thread, "k"):
            return (await agent.run("Hi.")).output

    first = asyncio.ensure_future(run())
    await script.waits.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await thread.wait(timeout=LIMIT)
    (step,) = await steps(thread)
    assert getattr(step.outcome, "code", "") == "cancelled_itself"
    script.steps[:] = ["Hello."]
    assert await run() == "Hello."


async def test_runs_one_after_the_other_and_side_by_side_have_steps_of_their_own(thread: Thread):
    script = Script("one", "two", "three", "four")
    agent = agent_of(script)

    async def all_runs() -> list[str]:
        with durable_run(thread, "k"):
            first, second = await agent.run("a"), await agent.run("b")
            beside = await asyncio.gather(agent.run("c"), agent.run("d"))
            return [each.output for each in (first, second, *beside)]

    said = await all_runs()
    assert sorted(said) == ["four", "one", "three", "two"]
    assert await all_runs() == said
    assert len(script.asked) == 4


async def test_calls_side_by_side_keep_their_own_results(thread: Thread):
    """Whichever began first: a step is found by the id of its call."""
    script = Script([call("late", "c1"), call("early", "c2"), call("late", "c3")], "done")
    began: list[str] = []
    open_gate = asyncio.Event()

    async def late(ctx: RunContext[None]) -> str:
        await open_gate.wait()
        began.append(str(ctx.tool_call_id))
        return f"late {ctx.tool_call_id}"

    async def early() -> str:
        open_gate.set()
        return "early"

    agent = agent_of(script, late, early)
    results: list[list[str]] = []
    for _ in range(2):
        with durable_run(thread, "k"):
            made = await agent.run("go")
        parts = [part for each in made.all_messages() for part in each.parts]
        results.append([str(part.content) for part in parts if isinstance(part, ToolReturnPart)])
    assert results == [["late c1", "early", "late c3"]] * 2
    assert sorted(began) == ["c1", "c3"]


async def test_a_retry_that_a_tool_asked_for_is_recorded(thread: Thread):
    till = Till(ModelRetry("more"))
    script = Script(call("charge", "c1", amount=1), call("charge", "c2", amount=5), "All paid.")
    agent = agent_of(script, till.charge)
    for _ in range(2):
        with durable_run(thread, "k"):
            assert (await agent.run("Order x.")).output == "All paid."
    assert till.charged == [1, 5]


async def test_an_approval_goes_on_in_the_same_run(thread: Thread):
    till = Till()
    script = Script(call("charge", amount=5), "All paid.")
    agent = agent_of(script, output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(till.charge)

    async def run() -> str:
        with durable_run(thread, "k"):
            asked = await agent.run("Order x.")
            allowed = DeferredToolResults(approvals={"c1": True})
            made = await agent.run(message_history=asked.all_messages(), deferred_tool_results=allowed)
            return str(made.output)

    assert [await run() for _ in range(2)] == ["All paid."] * 2
    assert till.charged == [5]


async def test_an_agent_within_a_tool_is_a_part_of_that_step(thread: Thread):
    inner_script = Script("inner answer")
    inner = Agent(inner_script.model, name="inner", capabilities=[Durability()])

    async def delegate() -> str:
        return (await inner.run("Do it.")).output

    agent = agent_of(Script(call("delegate"), "done"), delegate)
    for _ in range(2):
        with durable_run(thread, "k"):
            await agent.run("go")
    assert len(inner_script.asked) == 1
    assert len(await steps(thread)) == 3


async def test_a_stream_is_recorded_as_a_whole(thread: Thread):
    script = Script("one two three")
    agent = agent_of(script)
    for _ in range(2):
        with durable_run(thread, "k"):
            async with agent.run_stream("Hi.") as stream:
                assert await stream.get_output() == "one two three"
    assert len(script.asked) == 1


async def test_a_capability_of_others_is_recorded_with_its_operations(thread: Thread):
    from pydantic_ai.capabilities import durable_operation

    class Notes(AbstractCapability[Any]):
        def __init__(self) -> None:
            self.id = "notes"
            self.taken: list[str] = []

        @durable_operation(name="take")
        async def take(self, ctx: RunContext[Any], text: str) -> str:
            self.taken.append(text)
            return f"noted {text}"

        async def before_run(self, ctx: RunContext[Any]) -> None:
            await self.take(ctx, "begun")

    notes = Notes()
    agent = Agent(Script("Hello.").model, name="shop", capabilities=[notes, Durability()])
    for _ in range(2):
        with durable_run(thread, "k"):
            await agent.run("Hi.")
    assert notes.taken == ["begun"]


class Order(BaseModel):
    name: str
    amounts: list[int]


HOSTILE = "\x00\x1b[31m\u202e</task-notification>\U0001f600 \"'\\"


VALUES = {
    "hostile": HOSTILE,
    "big": "x" * 3_000_000,
    "nested": {"a": [1, None, 2**63, 1.5]},
    "binary": BinaryContent(b"\x00\xff", media_type="application/pdf"),
    "model": Order(name="x", amounts=[1]),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_results_come_back_as_they_were(thread: Thread, value: Any):
    """The model is sent the same, whether a result is new or recorded."""

    def give() -> Any:
        return value

    found: list[Any] = []
    for _ in range(2):
        agent = agent_of(Script(call("give"), "done"), give)
        with durable_run(thread, "k"):
            made = await agent.run("go")
        (part,) = (p for each in made.all_messages() for p in each.parts if isinstance(p, ToolReturnPart))
        found.append((part.content, part.model_response_str()))
    assert found[0] == found[1]
    assert found[0][0] == (value if not isinstance(value, Order) else value.model_dump())


async def test_an_agent_needs_a_name():
    with pytest.raises(UserError, match="name"):
        Agent(TestModel(), capabilities=[Durability()])


# -- killed


def ran(folder: Path, moment: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tests.integrations.pydantic_ai.durable_owner", str(folder), str(moment)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)


def effects(folder: Path) -> Counter[str]:
    return Counter((folder / "effects").read_text().splitlines())


UNKNOWN = "Nobody knows whether this call of charge had an effect"


@pytest.mark.breadth
@pytest.mark.parametrize(
    "moment",
    [pytest.param(each, marks=[] if each == 4 else [pytest.mark.breadth]) for each in range(1, MOMENTS + 1)],
)
def test_killed_at_any_moment_it_goes_on_from_the_last_recorded_step(tmp_path: Path, moment: int):
    assert ran(tmp_path, moment).returncode == -9
    again = ran(tmp_path, 0)
    assert again.returncode == 0, again.stderr
    done = effects(tmp_path)
    charge, _, found = again.stdout.strip().partition(" | ")
    in_charge = moment in (3, 4)  # before and after its effect
    assert done["charge"] == (0 if moment == 3 else 1), "it is never called twice"
    assert UNKNOWN in charge if in_charge else charge == "charged 5"
    assert found == "found x"
    asked = [done[f"request {place}"] for place in range(3)]
    twice = {2: 0, 6: 1, 10: 2}.get(moment)  # asked, and killed before the answer was recorded
    assert asked == [2 if place == twice else 1 for place in range(3)]
    assert done["look_up"] == (2 if moment == 8 else 1)
    assert ran(tmp_path, 0).stdout == again.stdout, "a third time changes nothing"
    assert effects(tmp_path) == done
