"""A loop of one's own as a working agent: an async function of a conversation, or an async generator."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import Agent, Call, InvalidInput, Meantime, Status, TaskFailed, current
from meantime.integrations.loops import Conversation, PythonAgent, TryAgain
from meantime.kernel.budgets import Budget
from meantime.kernel.fork_context import COPIED
from meantime.kernel.lines import Kind, Line
from meantime.ports.session import AgentSettings
from meantime.testing import FakeClock
from outcomes import unfinished

pytestmark = pytest.mark.anyio


async def echo(talk: Conversation) -> str:
    return f"{len(talk.messages)}: {talk.messages[-1].text}"


async def test_a_function_of_a_conversation_is_an_agent(ledger: str):
    async with Meantime.open(ledger, agents={"echo": echo}) as mt:
        handle = await mt.thread("t").start(Agent("echo", "hello"))
        assert await handle.result() == "1: hello"


@pytest.mark.behaviour("L16")
async def test_a_resume_goes_on_with_all_that_was_said(ledger: str):
    async with Meantime.open(ledger, agents={"echo": echo}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("echo", "one"))
        await handle.result()
        await thread.resume(handle, "two")
        assert await handle.result() == "3: two"


@pytest.mark.behaviour("L16")
async def test_a_resume_goes_on_after_a_restart_too(tmp_path: Path):
    ledger = tmp_path / "work.db"
    async with Meantime.open(ledger, agents={"echo": echo}) as mt:
        handle = await mt.thread("t").start(Agent("echo", "one"))
        await handle.result()
    async with Meantime.open(ledger, agents={"echo": echo}) as mt:
        again = await mt.thread("t").resume(handle.id, "two")
        assert await again.result() == "3: two"


@pytest.mark.behaviour("L22")
async def test_a_fork_has_a_copy_and_the_original_does_not_change(ledger: str):
    async with Meantime.open(ledger, agents={"echo": echo}) as mt:
        thread = mt.thread("t")
        first = await thread.start(Agent("echo", "one"))
        await first.result()
        fork = await thread.fork(first, "aside")
        assert await fork.result() == f"3: {COPIED}\n\naside"
        await thread.resume(first, "two")
        assert await first.result() == "3: two"


@pytest.mark.behaviour("L22")
async def test_an_agent_that_keeps_a_session_of_its_own_is_told_what_it_was_forked_from(ledger: str):
    async def keeper(talk: Conversation) -> str:
        return f"{talk.brief.task} from {talk.brief.forked_from or 'nothing'}"

    async with Meantime.open(ledger, agents={"keeper": keeper}) as mt:
        thread = mt.thread("t")
        first = await thread.start(Agent("keeper", "one"))
        assert await first.result() == f"{first.id} from nothing"
        fork = await thread.fork(first, "aside")
        assert await fork.result() == f"{fork.id} from {first.id}"


async def test_a_generator_yields_pieces_and_lines(ledger: str):
    async def agent(talk: Conversation) -> AsyncIterator[str | Line]:
        yield "Let me "
        yield "see."
        yield Line(role="assistant", kind=Kind.CALL, tool="look", arguments={"at": "x"}, call="c1")
        yield Line(role="tool", kind=Kind.RESULT, tool="look", text="nothing", call="c1")
        yield "There is "
        yield "nothing."

    async with Meantime.open(ledger, agents={"looker": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("looker", "look"))
        assert await handle.result() == "There is nothing."
        said = [(line.role, str(line.kind), line.text or line.tool) for line in await thread.lines(handle)]
        assert said == [
            ("user", "text", "look"),
            ("assistant", "text", "Let me see."),
            ("assistant", "call", "look"),
            ("tool", "result", "nothing"),
            ("assistant", "text", "There is nothing."),
        ]
        assert (await handle.get()).progress.tool_calls == {"look": 1}


async def test_a_result_that_is_no_text_is_json(ledger: str):
    async def agent(talk: Conversation) -> dict[str, int]:
        return {"found": 3}

    async with Meantime.open(ledger, agents={"counter": agent}) as mt:
        handle = await mt.thread("t").start(Agent("counter", "count"))
        assert await handle.result() == {"found": 3}


async def test_without_a_result_the_last_thing_said_is_it(ledger: str):
    async def agent(talk: Conversation) -> None:
        talk.add(Line(role="assistant", text="that was it"))

    async with Meantime.open(ledger, agents={"sayer": agent}) as mt:
        handle = await mt.thread("t").start(Agent("sayer", "say"))
        assert await handle.result() == "that was it"


@pytest.mark.behaviour("L17")
async def test_what_is_said_in_the_middle_of_a_turn_is_heard_once(ledger: str):
    heard: list[str] = []
    working, told = asyncio.Event(), asyncio.Event()

    async def agent(talk: Conversation) -> str:
        working.set()
        await told.wait()
        heard.extend(line.text for line in talk.heard())
        return f"heard {heard}"

    async with Meantime.open(ledger, agents={"hearer": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("hearer", "work"))
        await working.wait()
        assert await thread.send(handle, "faster") == "steered"
        told.set()
        assert await handle.result() == "heard ['faster']"
        assert [line.text for line in await thread.lines(handle) if line.role == "user"] == ["work", "faster"]


@pytest.mark.behaviour("L17")
async def test_a_loop_that_does_not_listen_is_called_again(ledger: str):
    working, told = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    async def agent(talk: Conversation) -> str:
        calls.append(talk.messages[-1].text)
        working.set()
        await told.wait()
        return calls[-1]

    async with Meantime.open(ledger, agents={"deaf": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("deaf", "work"))
        await working.wait()
        await thread.send(handle, "faster")
        told.set()
        assert await handle.result() == "faster"
        assert calls == ["work", "faster"]


@pytest.mark.behaviour("L26")
async def test_trouble_of_the_provider_is_waited_out_and_nobody_sees_it(clock: FakeClock):
    tries: list[int] = []

    async def agent(talk: Conversation) -> str:
        tries.append(len(talk.messages))
        if len(tries) < 3:
            raise TryAgain("503", after=7.0)
        return "done"

    async with Meantime.open(":memory:", agents={"patient": agent}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("patient", "work"))
        await clock.advance_to_alarm(7.0)
        await clock.advance_to_alarm(7.0)
        assert await handle.result() == "done"
        assert tries == [1, 1, 1], "the prompt is in the session once"


@pytest.mark.behaviour("L3")
async def test_an_error_of_the_loop_ends_the_task_and_its_session_is_kept(ledger: str):
    async def agent(talk: Conversation) -> str:
        if len(talk.messages) == 1:
            raise ValueError("no idea")
        return "better now"

    async with Meantime.open(ledger, agents={"fails": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("fails", "work"))
        with pytest.raises(TaskFailed, match="ValueError: no idea"):
            await handle.result()
        await thread.resume(handle, "again")
        assert await handle.result() == "better now"


async def test_a_stopped_generator_keeps_what_it_said(ledger: str):
    working = asyncio.Event()

    async def agent(talk: Conversation) -> AsyncIterator[str]:
        yield "half of "
        working.set()
        await asyncio.Event().wait()

    async with Meantime.open(ledger, agents={"slow": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("slow", "work"))
        await working.wait()
        await thread.cancel(handle, wait=True)
        assert unfinished(await handle.get()).partial == "half of "
        assert (await thread.lines(handle))[-1].text == "half of "


@pytest.mark.behaviour("L28")
async def test_a_loop_asks_and_a_person_allows(ledger: str):
    async def agent(talk: Conversation) -> str:
        return "deleted" if await talk.allowed("delete", {"file": "x"}) else "kept"

    async with Meantime.open(ledger, agents={"careful": agent}) as mt:
        handle = await mt.thread("t").start(Agent("careful", "clean up"))

        async def waits() -> bool:
            return (await handle.get()).status is Status.WAITING

        await until_async(waits, "it asks", handle.get)
        await mt.answer(handle.id, "allow")
        assert await handle.result() == "deleted"


async def test_tools_and_the_last_turn_are_the_loop_s_to_heed(ledger: str):
    async def agent(talk: Conversation) -> str:
        if talk.last:
            return f"handed in; {talk.may_use('read')}"
        talk.spent(turns=1)
        await asyncio.Event().wait()
        return ""

    employed = PythonAgent(agent, tools=("read",), budget=Budget(turns=1))
    async with Meantime.open(ledger, agents={"greedy": employed}) as mt:
        handle = await mt.thread("t").start(Agent("greedy", "work"))
        with pytest.raises(TaskFailed, match="budget of turns is spent"):
            await handle.result()
        assert unfinished(await handle.get()).partial == "handed in; False"


async def test_a_loop_can_start_work_of_its_own(ledger: str):
    async def add(a: int, b: int) -> int:
        return a + b

    holder: list[Meantime] = []

    async def agent(talk: Conversation) -> int:
        child = await holder[0].thread(f"of-{current().task_id}").start(Call(add, 1, 2))
        assert (await child.get()).parent == current().task_id
        return await child.result()

    async with Meantime.open(ledger, agents={"parent": PythonAgent(agent, depth=1)}) as mt:
        holder.append(mt)
        handle = await mt.thread("t").start(Agent("parent", "add"))
        assert await handle.result() == 3


# -- by its name, from the configuration


async def test_an_agent_is_found_by_its_name_when_it_is_first_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "my_loops_on_disk.py").write_text(
        "async def agent(talk):\n    return talk.messages[-1].text\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named = AgentSettings(runner="python", agent="my_loops_on_disk:agent")
    async with Meantime.open(":memory:", agents={"named": named}) as mt:
        assert "my_loops_on_disk" not in sys.modules
        handle = await mt.thread("t").start(Agent("named", "hello"))
        assert await handle.result() == "hello"


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("no_such_module:agent", "cannot be imported: No module named 'no_such_module'"),
        ("os:nothing", "is not in os"),
        ("os:path", "is module"),
        ("tests.integrations.loops.broken:agent", "raises RuntimeError: on purpose"),
    ],
)
async def test_one_that_cannot_be_found_is_refused_clearly(agent: str, said: str):
    named = AgentSettings(runner="python", agent=agent)
    async with Meantime.open(":memory:", agents={"named": named}) as mt:
        with pytest.raises(InvalidInput, match=said):
            await mt.thread("t").start(Agent("named", "hello"))


async def test_what_is_no_agent_is_refused_when_it_is_given():
    for agent in ("", "os"):
        with pytest.raises(InvalidInput, match="module:object"):
            Meantime.open(":memory:", agents={"named": AgentSettings(runner="python", agent=agent)})
    with pytest.raises(InvalidInput, match="int"):
        Meantime.open(":memory:", agents={"seven": 7})
    with pytest.raises(InvalidInput, match="colour"):
        PythonAgent(echo, colour="red")


async def test_a_session_of_elsewhere_is_no_path(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db", agents={"echo": echo}) as mt:
        handle = await mt.thread("t").start(Agent("echo", "x"), session="..")
        with pytest.raises(TaskFailed, match="session"):
            await handle.result()
