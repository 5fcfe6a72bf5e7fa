"""What a toolset does with an ask, in a dialect that has one tool for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from meantime import Agent, Call, Meantime, Said, Shell, Thread, Toolset, blocking
from meantime.dialects.meantime import Meantime as Own
from meantime.ports import asks
from meantime.ports.asks import Answer
from meantime.ports.dialect import Command, Offer, Policy, Tool
from meantime.testing import FakeClock, FakeSessionRunner
from meantime.toolset.arguments import Arguments, tool
from meantime.toolset.work_catalog import GivenWorks

pytestmark = pytest.mark.anyio


class Anything(Arguments):
    """Nothing."""


class Asking(Own):
    """Performs the ask that it was made for, and keeps the answer."""

    name = "asking"

    def __init__(self, ask: asks.Ask, policy: Policy | None = None) -> None:
        self.ask = ask
        self.policy = policy or Policy()
        self.answers: list[Answer] = []

    def tools(self, offer: Offer) -> Sequence[Tool]:
        return [tool("do", "Does it.", Anything, lambda given: self.ask, self._say)]

    def commands(self) -> Sequence[Command]:
        say = Command(
            name="limit",
            aliases=("set limit",),
            description="Sets the limit.",
            usage="/limit NUMBER",
            ask=self._limit,
            say=self._say,
        )
        return [say]

    def _limit(self, rest: str) -> asks.Ask | Said:
        return asks.SetLimit(kind="agent", most=int(rest)) if rest else Said("Usage: /limit NUMBER")

    def _say(self, ask: asks.Ask, answer: Answer) -> Said:
        self.answers.append(answer)
        return Said("done")


def made(thread: Thread, dialect: Asking, **tools: Any) -> Toolset:
    works = GivenWorks(thread._tasks, tools=tools)
    return Toolset(thread._tasks, works, thread.id, dialect)


async def performed(thread: Thread, ask: asks.Ask, policy: Policy | None = None, **tools: Any) -> Answer:
    dialect = Asking(ask, policy)
    said = await made(thread, dialect, **tools).call("do")
    assert said.text == "done", said
    return dialect.answers[0]


@pytest.mark.behaviour("F6")
async def test_a_call_that_ends_in_time_has_a_result_and_no_task(thread: Thread) -> None:
    ask = asks.StartTool(name="add", arguments={"a": 1}, background=False, threshold=30)
    answer = await performed(thread, ask, add=lambda a: a + 1)
    assert (answer.inline, answer.result, answer.tasks) == (True, 2, ())
    assert await thread.list("all") == []


@pytest.mark.behaviour("F5")
async def test_a_call_that_is_slow_goes_on_as_a_task(thread: Thread, clock: FakeClock) -> None:
    gate = asyncio.Event()
    ask = asks.StartTool(name="slow", background=False, threshold=5)
    calling = asyncio.ensure_future(performed(thread, ask, slow=gate.wait))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert (answer.inline, answer.result, answer.task.status) == (False, None, "running")
    gate.set()


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(
    ("names", "there"),
    [(["review"], "There are: review."), (None, "There are none here: name one with [agents.NAME]")],
)
async def test_an_agent_that_is_not_offered_is_not_started(
    thread: Thread, names: list[str] | None, there: str, background: bool
) -> None:
    """A schema only says which there are; a model may send another name."""
    dialect = Asking(asks.StartAgent(agent="explore", prompt="x", background=background))
    works = GivenWorks(thread._tasks, names)
    said = await Toolset(thread._tasks, works, thread.id, dialect).call("do")
    assert said.code == "not_found"
    assert f"There is no agent 'explore' to start.\n{there}" in said.text
    assert await thread.list("all") == []


@pytest.mark.behaviour("F7")
async def test_one_tool_call_has_one_task(thread: Thread) -> None:
    toolset = thread.toolset("background")
    given = {"description": "x", "prompt": "x", "agent": "explore"}
    first = await toolset.call("background_task", given, tool_call_id="call-1", message_id="m-7")
    second = await toolset.call("background_task", given, tool_call_id="call-1")
    assert second.code.startswith("duplicate")
    assert first.data["task_id"] in second.text
    assert (await thread.get(first.data["task_id"])).message_id == "m-7"


@pytest.mark.behaviour("I3")
async def test_a_wait_is_over_after_its_time_and_says_that_it_lives(
    thread: Thread, clock: FakeClock, agents: FakeSessionRunner
) -> None:
    agents.hold()
    toolset = thread.toolset("background")
    id = (await thread.start(Agent("explore", "look"))).id
    heard: list[tuple[float, float, str]] = []

    async def beat(*said: Any) -> None:
        heard.append(said)

    waiting = asyncio.ensure_future(
        toolset.call("background_output", {"task_id": id, "block": True, "timeout": 20}, beat)
    )
    await clock.advance_to_alarm(15)
    await clock.advance_to_alarm(5)
    said = await waiting
    assert heard == [(15.0, 20.0, "0 of 1 have ended")]
    assert said.data["status"] == "running"
    assert said.text.endswith("You are notified when it ends.")


@pytest.mark.behaviour("I14")
@pytest.mark.parametrize(
    ("policy", "listed"),
    [
        (Policy(), 3),
        (Policy(listed_most=2), 2),
        (Policy(listed_seconds=15), 1),
        (Policy(listed_per_slot=1, listed_most=9), 2),
        (Policy(listed="cleared"), 3),
    ],
)
async def test_how_long_ended_tasks_are_listed(
    thread: Thread, mt: Meantime, clock: FakeClock, policy: Policy, listed: int
) -> None:
    await mt.set_limits(per_kind={"agent": 2})
    for _ in range(3):
        await clock.advance(10)
        await (await thread.start(Call(int, "1"))).wait()
    await clock.advance(10)
    every = asks.List(statuses=frozenset({"completed"}))  # type: ignore[arg-type]
    answer = await performed(thread, every, policy)
    assert len(answer.tasks) == listed
    newest = await thread.list("all")
    assert list(answer.tasks) == list(newest[:listed])


async def test_a_list_of_tasks_with_the_same_mark(thread: Thread) -> None:
    for plugin in ("cli", "mcp"):
        await (await thread.start(Call(int, "1"), id=plugin, meta={"plugin": plugin})).wait()
    every = asks.List(statuses=frozenset({"completed"}), meta={"plugin": "mcp"})  # type: ignore[arg-type]
    assert [task.id for task in (await performed(thread, every)).tasks] == ["mcp"]


@pytest.mark.behaviour("L5")
async def test_a_cancel_that_does_not_wait_answers_with_the_request(
    thread: Thread, clock: FakeClock, agents: FakeSessionRunner
) -> None:
    agents.hold()
    id = (await thread.start(Agent("explore", "look"))).id
    await clock.until(lambda: agents.at_gate)
    answer = await performed(thread, asks.Cancel(ref=id), Policy(cancel_waits=False))
    assert answer.task.status == "cancelling"


@pytest.mark.behaviour("M4")
async def test_over_the_limit_the_policy_says_whether_to_queue_or_refuse(
    thread: Thread, mt: Meantime, agents: FakeSessionRunner
) -> None:
    await mt.set_limits(per_kind={"agent": 1})
    agents.hold()
    ask = asks.StartAgent(agent="explore", prompt="look")
    await performed(thread, ask)
    assert (await performed(thread, ask, Policy(on_limit="queue"))).task.status == "queued"
    said = await made(thread, Asking(ask, Policy(on_limit="reject"))).call("do")
    assert said.code == "limit_reached"


@pytest.mark.behaviour("M1")
@pytest.mark.parametrize("background", [True, False])
async def test_a_limit_of_the_policy_may_be_above_what_is_listed_at_once(
    thread: Thread, agents: FakeSessionRunner, background: bool
) -> None:
    ask = asks.StartAgent(agent="explore", prompt="look", background=background)
    answer = await performed(thread, ask, Policy(most_active=10**12))
    assert answer.inline is not background


@pytest.mark.breadth
@pytest.mark.behaviour("M1")
async def test_more_than_are_listed_at_once_are_counted(thread: Thread, agents: FakeSessionRunner) -> None:
    agents.hold()
    await asyncio.gather(*(thread.start(Agent("explore", "look")) for _ in range(1_001)))
    ask, policy = asks.StartAgent(agent="explore", prompt="look"), Policy(most_active=1_002)
    await performed(thread, ask, policy)
    said = await made(thread, Asking(ask, policy)).call("do")
    assert (said.code, "1002 of at most 1002" in said.text) == ("limit_reached", True)


@pytest.mark.behaviour("N2")
async def test_a_read_in_a_turn_that_is_over_settles_nothing(
    thread: Thread, agents: FakeSessionRunner
) -> None:
    handle = await thread.start(Agent("explore", "look"))
    await handle.wait()
    async with thread.turn() as turn:
        pass
    said = await thread.toolset("asyncagents", turn=turn).call("asyncagents_output", {"task_id": handle.id})
    assert (said.code, said.data["result"]) == ("", "done")
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]


async def test_what_a_person_types(thread: Thread, mt: Meantime) -> None:
    toolset = made(thread, Asking(asks.Tools()))
    assert (await toolset.command("/limit")).text == "Usage: /limit NUMBER"
    assert (await toolset.command("  /set   limit 7 ")).text == "done"
    assert mt.limits().for_kind("agent") == 7
    wrong = await toolset.command("/limit 0")
    assert (wrong.code, mt.limits().for_kind("agent")) == ("invalid_input", 7)
    unknown = await toolset.command("/limits 3")
    assert (unknown.code, "There are: /limit, /set limit." in unknown.text) == ("not_found", True)


async def test_a_fault_of_a_dialect_is_said_without_its_insides(
    thread: Thread, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Asking):
        def _say(self, ask: asks.Ask, answer: Answer) -> Said:
            raise RuntimeError("secret")

    said = await made(thread, Broken(asks.Tools())).call("do")
    assert said.code == "internal"
    assert "secret" not in said.text
    assert "secret" in caplog.text


async def test_times_are_by_the_clock_of_the_ledger(
    thread: Thread, clock: FakeClock, agents: FakeSessionRunner
) -> None:
    """An agent is told how long its work runs by the same clock that began it."""
    agents.hold()
    id = (await thread.start(Agent("explore", "look"), description="look")).id
    await clock.until(lambda: agents.at_gate)
    await clock.advance(90)
    assert f'{id} [running] explore: "look" (1m 30s)' in await thread.reminder("background")
    listed = await thread.toolset("background").call("background_list")
    assert listed.text.endswith("(1m 30s)")
    assert (await performed(thread, asks.List())).now == clock.now()


@pytest.mark.behaviour("N7")
async def test_the_reminder_is_in_the_words_of_the_dialect(thread: Thread, agents: FakeSessionRunner) -> None:
    assert await thread.reminder("background") == ""
    agents.hold("slow")
    slow = await thread.start(Agent("slow", "look"), description="the slow one")
    quick = await thread.start(Agent("explore", "look"), description="the quick one")
    await quick.wait()
    said = await thread.reminder("background")
    assert f'- {slow.id} [running] slow: "the slow one"' in said
    assert f'- {quick.id} [completed] explore: "the quick one"' in said
    async with thread.turn() as turn:
        assert quick.id not in await turn.reminder("background")
        await turn.ack()
    assert quick.id not in await thread.reminder("background")
    assert await thread.reminder("meantime") == await thread.reminder()
    for number in range(25):
        await thread.start(Agent("slow", "look"), description=f"number {number}")
    said = await thread.reminder("background")
    assert said.count("\n- t_") == 20
    assert "\n- and 6 more\n" in said


def test_a_toolset_without_async() -> None:
    with blocking.Meantime.open(":memory:", runners=[FakeSessionRunner("found")]) as mt:
        thread = mt.thread("conv-1")
        toolset = thread.toolset("asyncagents")
        assert "asyncagents_task" in [tool.name for tool in toolset.tools()]
        given = {"description": "x", "prompt": "x", "agent": "explore"}
        id = toolset.call("asyncagents_task", given).data["task_id"]
        with thread.turn() as turn:
            speaking = thread.toolset("asyncagents", turn=turn)
            said = speaking.call("asyncagents_output", {"task_id": id, "block": True})
            assert said.data["result"] == "found"
            turn.ack()
        with thread.turn() as turn:
            assert turn.notices == []


async def test_the_id_of_a_notice_is_taken_by_every_tool_that_names_a_task(thread: Thread) -> None:
    """It is the id that a model was told."""
    toolset = thread.toolset()
    id = (await toolset.call("start_agent", {"agent": "explore", "prompt": "look"})).data["id"]
    await thread.wait(id)
    told = f"{id}.1"
    for name, given in (
        ("output", {"id": told}),
        ("wait", {"ids": [told]}),
        ("cancel", {"id": told}),
        ("resume", {"id": told, "prompt": "and?"}),
    ):
        said = await toolset.call(name, given)
        assert not said.code, (name, said.text)
        assert id in str(said.data), name


@pytest.mark.parametrize("given", ['{"ids": ["%s"]}', b'{"ids": ["%s"]}'], ids=["text", "bytes"])
async def test_arguments_may_be_the_text_that_the_model_wrote(thread: Thread, given: str | bytes) -> None:
    toolset = thread.toolset()
    task = await thread.start(Call(int, "7"))
    filled = given % (task.id if isinstance(given, str) else task.id.encode())
    assert "7" in (await toolset.call("wait", filled)).text
    assert (await toolset.call("list", "")).code == ""
    for wrong in ("{", '"a"', "[1]", b"\xff", "[" * 100_000):
        assert (await toolset.call("wait", wrong)).code == "invalid_input"


async def test_an_agent_watches_tasks_of_its_own_conversation_alone(mt: Meantime, thread: Thread):
    theirs = await mt.thread("other").start(Call(asyncio.sleep, 30))
    own = thread.toolset("meantime", commands=Shell)
    refused = await own.call("watch", {"id": theirs.id, "match": "x"})
    assert refused.code == "not_found"
    said = await own.call("watch", {"file": "/nowhere/at/all", "deadline": 30, "description": "a file"})
    assert said.text.startswith("Started t_")
    assert "you are told of its matches and when it ends" in said.text
    for given, count in (({}, 0), ({"port": 1, "url": "http://x"}, 2)):
        refused = await own.call("watch", given)
        expected = f"A watch looks at one thing, not {count}.\nGive one of: id, file, port, url, command."
        assert expected in refused.text
    waited = await own.call("wait", {"seconds": 0})
    assert waited.text == "Nothing runs, so there is nothing to wait for."


@pytest.mark.parametrize("asked", [{"command": "id"}, {"file": "/etc/passwd", "match": "."}])
async def test_a_watch_does_not_pass_by_the_programs_own_commands(thread: Thread, asked: dict[str, Any]):
    """A watch runs its command, and reads its file, as the owner: outside of the program's sandbox."""

    class Sandboxed(Shell):
        """A subclass is no plain command either."""

    for factory in (Sandboxed, lambda command, **how: Shell(["true", command], **how)):
        own = thread.toolset("meantime", commands=factory)
        (watch,) = [tool for tool in await own.tools() if tool.name == "watch"]
        assert not {"command", "file", "cwd"} & set(watch.schema["properties"])
        assert "command" not in watch.description
        refused = await own.call("watch", {**asked, "description": "look"})
        assert (refused.code, await thread.list("all")) == ("not_watchable", [])
        assert "cannot be watched here" in refused.text
        assert (await own.call("watch", {})).text.endswith("Give one of: id, port, url.")


async def test_an_agent_that_nobody_gave_is_told_to_a_model_without_advice_on_a_configuration():
    async with Meantime.open(":memory:") as mt:
        toolset = mt.thread("c").toolset(agents=["nosuch"])
        said = await toolset.call("start_agent", {"agent": "nosuch", "prompt": "look"})
    assert said.code == "unknown_agent"
    assert "There is no agent 'nosuch' here." in said.text
    assert "configuration" not in said.text
    assert "open(" not in said.text
