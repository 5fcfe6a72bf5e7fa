"""Actions on a task: what kernel/actions.py calls legal, the verbs accept; what it does not, they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until_async

from meantime import Agent, Call, Meantime, Settings, Shell
from meantime.kernel.change import Disposition, Facts, ending
from meantime.kernel.errors import MeantimeError
from meantime.kernel.lifecycle import ENDED, Move, Status
from meantime.kernel.limits import Limits
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Outcome, Task, TimedOut, Work, fence_of
from meantime.kernel.outcomes import Report
from meantime.kernel.questions import Question
from meantime.kernel.work import Order
from meantime.ports.runner import Abilities, Assignment, Context
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.ports.tasks import Options
from meantime.runners.agent.agent_run import HostedAgent
from meantime.runtime.runtime import Runtime
from meantime.testing.scripted_host import ScriptedHost
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
OUTCOMES: dict[Status, Outcome] = {
    Status.COMPLETED: Completed("done"),
    Status.FAILED: Failed("it broke"),
    Status.CANCELLED: Cancelled("user"),
    Status.TIMED_OUT: TimedOut(1.0),
    Status.LOST: Lost("nobody knows"),
}
OPEN = Limits(per_thread=-1, total=-1, per_kind={})
SHUT = Limits(per_thread=1, total=1, per_kind={})  # one slot, which is taken


class CustomRunner:
    """A kind of work of one's own, with no ability beyond running."""

    kind = "custom"
    abilities = Abilities()

    def check(self, task: Task, assignment: Assignment) -> None:
        pass

    def can_run(self, task: Task) -> bool:
        return False

    async def exists(self, task: Task) -> bool:
        return False

    async def run(self, assignment: Assignment, context: Context) -> Report:
        await asyncio.Event().wait()
        raise AssertionError("it waits until it is cancelled")


async def never() -> None:
    await asyncio.Event().wait()


async def turn(prompt: Prompt, hearer: Hearer) -> str:
    await asyncio.Event().wait()
    return ""


def order(kind: str) -> Order:
    return {
        "call": Call(never).order(),
        "shell": Shell(["cat"], open_stdin=True).order(),
        "agent": Agent("worker", "look").order(),
        "custom": Order(Work("custom", "x")),
    }[kind]


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    agents = {"worker": HostedAgent(AgentSettings(runner="python", last_turn=0), ScriptedHost(turn))}
    # One that is cancelling by the record alone is not asked to stop: the close gives it up after these.
    settings = Settings(limits=OPEN, stop_grace=0.1, stop_deadline=0.2)
    async with Meantime.open(":memory:", agents=agents, runners=[CustomRunner()], settings=settings) as mt:
        await mt.thread("busy").start(Call(never))
        yield runtime_of(mt)


async def made(runtime: Runtime, kind: str, status: Status, thread: str) -> str:
    """A task of this kind in this status: real work, moved by the one writer."""
    await runtime.set_limits(SHUT if status is Status.QUEUED else OPEN)
    task = await runtime.start(thread, order(kind), Options())
    id = task.id
    if status is Status.QUEUED:
        return id
    await until_async(lambda: has_begun(runtime, kind, id), f"the {kind} has begun")
    if status is Status.WAITING:
        question = Question(id="q", text="Go on?")
        await runtime.record.insist(id, Move.ASK, Facts(question=question, run=fence_of(task.run)))
    elif status is Status.CANCELLING:  # by the record alone: the work is not asked to stop yet
        await runtime.record.move(id, Move.CANCEL, Facts(by="user"))
    elif status in ENDED:
        outcome = OUTCOMES[status]
        await runtime.record.insist(id, ending(outcome), Facts(outcome=outcome))
        runtime.runs.live[id].runner.cancel()
    return id


async def has_begun(runtime: Runtime, kind: str, id: str) -> bool:
    """Its agent has a session, its command can be written to."""
    if kind == "agent":
        return runtime.record.live[id].session is not None
    if kind != "shell":
        return True
    try:
        await runtime.send(id, None, "\n")
    except MeantimeError:
        return False
    return True


async def accepted(runtime: Runtime, action: str, id: str, thread: str, kind: str) -> bool:
    """Whether the verb does it."""
    try:
        match action:
            case "cancel":
                return (await runtime.cancel(id, None)).disposition is Disposition.APPLIED
            case "answer":
                await runtime.answer(id, None, "yes")
            case "resume":
                await runtime.resume(id, None, "go on", Options())
            case "fork":
                await runtime.start(thread, order(kind), Options(fork=True, fork_of=id))
            case "send":
                await runtime.send(id, None, "more")
            case "promote":
                await runtime.promote(id, None)
            case "unpark":
                return await runtime.unpark(thread, [f"{id}.1"]) == 1
            case "clear":
                return await runtime.clear(thread, [id]) == 1
            case "purge":
                return await runtime.purge([id]) == 1
            case _:
                raise AssertionError(f"no verb is known for the action {action}")
    except MeantimeError:
        return False
    return True


@pytest.mark.embedded
@pytest.mark.in_process("what is queued is offered, and a worker may claim it between the two looks")
@pytest.mark.parametrize("kind", ["call", "shell", "agent", "custom"])
@pytest.mark.parametrize("status", list(Status))
async def test_legal_is_what_the_verbs_accept(runtime: Runtime, kind: str, status: Status):
    """Every action on a task of its own, as most of them change it."""
    first = await made(runtime, kind, status, "first")
    names = [action.name for action in (await runtime.details(first, None)).actions]
    assert len(names) == 9
    for name in names:
        id = await made(runtime, kind, status, f"conv-{name}")
        (action,) = [one for one in (await runtime.details(id, None)).actions if one.name == name]
        really = await accepted(runtime, name, id, f"conv-{name}", kind)
        assert (name, action.legal) == (name, really), action.reason
        assert bool(action.reason) is not action.legal
        assert action.cli.startswith("meantime ")


@pytest.mark.embedded
async def test_a_parked_notice_can_be_unparked_and_then_no_more(runtime: Runtime):
    id = await made(runtime, "call", Status.COMPLETED, "conv-1")
    for _ in range(runtime.settings.parks_after):
        opened = await runtime.open_turn("conv-1", lease=None, limit=5)
        await runtime.close_turn(opened.id, failed=True)
    details = await runtime.details(id, None)
    (unpark,) = [one for one in details.actions if one.name == "unpark"]
    assert unpark.legal
    assert unpark.cli == f"meantime unpark conv-1 {id}.1"
    assert details.deliveries[0].reason == "Its delivery failed 5 times."
    assert await accepted(runtime, "unpark", id, "conv-1", "call")
    (unpark,) = [one for one in (await runtime.details(id, None)).actions if one.name == "unpark"]
    assert not unpark.legal
    assert not await accepted(runtime, "unpark", id, "conv-1", "call")


@pytest.mark.embedded
async def test_a_command_without_an_open_stdin_takes_no_input(runtime: Runtime):
    task = await runtime.start("conv-1", Shell(["sleep", "600"]).order(), Options())
    (send,) = [one for one in (await runtime.details(task.id, None)).actions if one.name == "send"]
    assert not send.legal
    assert "open_stdin" in send.reason
    assert not await accepted(runtime, "send", task.id, "conv-1", "shell")
    await runtime.cancel(task.id, None, wait=True)
