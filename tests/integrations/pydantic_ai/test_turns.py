"""A Pydantic AI agent works in the background: what it says, does and spends is kept as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, TextPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.waiting import until_async

from meantime import Agent, Call, Meantime, TaskFailed, current
from meantime.integrations.loops import PythonAgent
from meantime.kernel.budgets import Budget
from meantime.kernel.errors import InvalidInput
from meantime.kernel.fork_context import COPIED
from meantime.ports.session import AgentSettings, Brief
from outcomes import failed, unfinished

from .scripted import Script, call, until_said

pytestmark = pytest.mark.anyio


def looker(script: Script) -> PydanticAgent[None, str]:
    agent = PydanticAgent(script.model, system_prompt="Be brief.")

    @agent.tool_plain
    def look(at: str) -> str:
        return f"saw {at}"

    @agent.tool_plain
    def fail() -> str:
        raise ValueError("broken")

    return agent


async def test_its_result_is_the_last_thing_it_said(ledger: str):
    script = Script(call("look", at="x"), "there is x")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "what is there?"))
        assert await handle.result() == "there is x"


async def test_the_lines_the_log_and_the_progress_say_what_happens(ledger: str):
    script = Script(call("look", at="x"), "there is x")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "what is there?"))
        await handle.result()
        lines = [(line.role, str(line.kind), line.tool, line.text) for line in await thread.lines(handle)]
        assert lines == [
            ("user", "text", "", "what is there?"),
            ("assistant", "call", "look", ""),
            ("tool", "result", "look", "saw x"),
            ("assistant", "text", "", "there is x"),
        ]
        assert (await thread.lines(handle))[1].arguments == {"at": "x"}
        text = (await thread.log(handle).read()).text
        assert text == '> what is there?\n→ look {"at":"x"}\n← look saw x\nthere is x\n'
        progress = (await handle.get()).progress
        assert (progress.turns, progress.tool_calls) == (2, {"look": 1})
        assert progress.tokens > 0


async def test_text_is_heard_as_it_streams(ledger: str):
    more = asyncio.Event()

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "one "
        await more.wait()
        yield "two"

    agent = PydanticAgent(FunctionModel(stream_function=stream))
    async with Meantime.open(ledger, agents={"says": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("says", "go"))

        async def is_heard() -> bool:
            return "one" in (await thread.log(handle).read()).text

        await until_async(is_heard, "its first word is in the log")
        more.set()
        assert await handle.result() == "one two"
        assert (await thread.log(handle).read()).text == "> go\none two\n"


async def test_an_output_type_becomes_json(ledger: str):
    class City(BaseModel):
        name: str
        people: int

    agent = PydanticAgent(TestModel(custom_output_args={"name": "Ulm", "people": 128}), output_type=City)
    async with Meantime.open(ledger, agents={"cities": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("cities", "which?"))
        assert await handle.result() == {"name": "Ulm", "people": 128}
        assert (await thread.lines(handle))[-1].text == '{"name":"Ulm","people":128}'


@pytest.mark.behaviour("L16")
async def test_a_resume_has_the_exact_messages(tmp_path: Path):
    ledger = tmp_path / "work.db"
    script = Script(call("look", at="x"), "there is x", "and y")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "what is there?"))
        await handle.result()
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        again = await mt.thread("t").resume(handle.id, "what else?")
        assert await again.result() == "and y"
    before, after = script.asked[1], script.asked[2]
    assert after.messages[: len(before.messages)] == before.messages
    assert after.prompts == ["what is there?", "what else?"]
    assert after.parts(ToolReturnPart)[0].content == "saw x"


@pytest.mark.behaviour("L22")
async def test_a_fork_of_a_busy_session_has_what_was_said_so_far(ledger: str):
    hold = asyncio.Event()
    script = Script(call("look", at="x"), hold, "there is x", "aside")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        thread = mt.thread("t")
        busy = await thread.start(Agent("explore", "what is there?"))
        await script.waits.wait()
        script.steps.insert(0, "aside")  # what the fork is answered
        fork = await thread.fork(busy, "and aside of that?")
        assert await fork.result() == "aside"
        assert script.asked[-1].prompts == ["what is there?", f"{COPIED}\n\nand aside of that?"]
        assert script.asked[-1].results == ["saw x"]
        hold.set()
        assert await busy.result() == "there is x"
        await thread.resume(busy, "go on")
        await busy.result()
        assert not any("and aside of that?" in prompt for prompt in script.asked[-1].prompts)


async def test_a_fork_in_the_middle_of_a_tool_says_that_it_was_interrupted(ledger: str):
    working, hold = asyncio.Event(), asyncio.Event()
    script = Script([call("quick", "c1"), call("slow", "c2")], "never mind", "done")
    agent = PydanticAgent(script.model)

    @agent.tool_plain
    async def quick() -> str:
        return "quick is done"

    @agent.tool_plain
    async def slow() -> str:
        working.set()
        await hold.wait()
        return "slow is done"

    async with Meantime.open(ledger, agents={"explore": agent}) as mt:
        thread = mt.thread("t")
        busy = await thread.start(Agent("explore", "both"))
        await working.wait()
        await until_said(thread, busy, "quick is done")
        fork = await thread.fork(busy, "leave it")
        assert await fork.result() == "never mind"
        quick_said, slow_said = script.asked[-1].results
        assert quick_said == "quick is done"
        assert "slow is done" not in slow_said
        hold.set()
        assert await busy.result() == "done"
        assert script.asked[-1].results == ["quick is done", "slow is done"]


@pytest.mark.behaviour("L3")
async def test_an_error_of_a_tool_ends_the_turn_and_a_resume_is_valid(ledger: str):
    script = Script(call("fail"), "without it")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "go"))
        with pytest.raises(TaskFailed, match="ValueError: broken"):
            await handle.result()
        await thread.resume(handle, "without that tool")
        assert await handle.result() == "without it"


@pytest.mark.behaviour("L3")
async def test_an_error_of_the_model_that_is_no_trouble_ends_the_turn(ledger: str):
    script = Script(ModelHTTPError(400, "m", "too long"))
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "go"))
        with pytest.raises(TaskFailed, match="400"):
            await handle.result()
        assert failed(await handle.get()).code == "model_error"
        assert len(script.asked) == 1


async def test_a_stop_in_the_middle_of_a_tool_is_prompt_and_the_session_goes_on(ledger: str):
    working = asyncio.Event()
    script = Script(call("slow"), "fine")
    agent = PydanticAgent(script.model)

    @agent.tool_plain
    async def slow() -> str:
        working.set()
        await asyncio.Event().wait()
        return ""

    async with Meantime.open(ledger, agents={"explore": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "go"))
        await working.wait()
        await thread.cancel(handle, wait=True)
        assert (await handle.get()).status == "cancelled"
        await thread.resume(handle, "something else")
        assert await handle.result() == "fine"
        assert script.asked[-1].prompts == ["go", "something else"]


async def test_a_stop_in_the_middle_of_a_sentence_keeps_what_was_said(ledger: str):
    working = asyncio.Event()
    asked: list[int] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.append(len(messages))
        if len(asked) > 1:
            yield "".join(part.content for part in messages[1].parts if isinstance(part, TextPart))
            return
        yield "half of "
        working.set()
        await asyncio.Event().wait()

    agent = PydanticAgent(FunctionModel(stream_function=stream))
    async with Meantime.open(ledger, agents={"says": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("says", "go"))
        await working.wait()
        await thread.cancel(handle, wait=True)
        assert unfinished(await handle.get()).partial == "half of "
        await thread.resume(handle, "what did you say?")
        assert await handle.result() == "half of "


@pytest.mark.behaviour("L17")
async def test_what_is_said_in_the_middle_reaches_the_next_request_once(ledger: str):
    hold = asyncio.Event()
    working = asyncio.Event()
    script = Script(call("slow"), "done")
    agent = PydanticAgent(script.model)

    @agent.tool_plain
    async def slow() -> str:
        working.set()
        await hold.wait()
        return "slept"

    async with Meantime.open(ledger, agents={"explore": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "go"))
        await working.wait()
        assert await thread.send(handle, "and be quick") == "steered"
        hold.set()
        assert await handle.result() == "done"
        assert script.asked[1].prompts == ["go", "and be quick"]
        await thread.resume(handle, "more")
        await handle.result()
        assert script.asked[2].prompts == ["go", "and be quick", "more"]


@pytest.mark.behaviour("L17")
async def test_said_while_the_last_request_runs_it_makes_one_more(ledger: str):
    hold = asyncio.Event()
    script = Script(hold, "done", "done, and quickly")
    async with Meantime.open(ledger, agents={"explore": looker(script)}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "go"))
        await script.waits.wait()
        assert await thread.send(handle, "and be quick") == "steered"
        hold.set()
        assert await handle.result() == "done, and quickly"
        assert script.asked[-1].prompts == ["go", "and be quick"]


async def test_tools_run_in_the_task_and_can_start_work_of_their_own(ledger: str):
    script = Script(call("delegate"), "done")
    agent = PydanticAgent(script.model)
    parents: list[str | None] = []

    async def double(n: int) -> int:
        return 2 * n

    @agent.tool_plain
    async def delegate() -> int:
        child = await mt.thread(f"of-{current().task_id}").start(Call(double, 21))
        parents.append((await child.get()).parent)
        return await child.result()

    async with Meantime.open(ledger, agents={"explore": PythonAgent(agent, depth=1)}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "go"))
        await handle.result()
        assert parents == [handle.id]
        assert script.asked[-1].results == ["42"]


@pytest.mark.parametrize(("tools", "seen"), [(None, ["look", "fail"]), (("look",), ["look"]), ((), [])])
async def test_the_model_sees_the_tools_that_the_settings_name(
    tools: tuple[str, ...] | None, seen: list[str]
):
    script = Script("done")
    async with Meantime.open(":memory:", agents={"explore": PythonAgent(looker(script), tools=tools)}) as mt:
        await (await mt.thread("t").start(Agent("explore", "go"))).result()
        assert script.asked[0].tools == seen


async def test_a_tool_that_is_not_named_is_not_called_either():
    script = Script(call("fail"), "as you wish")
    employed = PythonAgent(looker(script), tools=("look",))
    async with Meantime.open(":memory:", agents={"explore": employed}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "go"))
        assert await handle.result() == "as you wish"
        assert "broken" not in script.asked[-1].results[0]


@pytest.mark.behaviour("L15")
async def test_a_budget_ends_it_with_a_last_turn_without_tools(ledger: str):
    script = Script(call("look", at="x"), call("look", "c2", at="y"), "so far: x")
    employed = PythonAgent(looker(script), budget=Budget(tool_calls=2))
    async with Meantime.open(ledger, agents={"explore": employed}) as mt:
        handle = await mt.thread("t").start(Agent("explore", "go"))
        with pytest.raises(TaskFailed, match="tool calls"):
            await handle.result()
        assert unfinished(await handle.get()).partial == "so far: x"
        assert script.asked[-1].tools == []
        assert script.asked[0].tools == ["look", "fail"]


async def test_deps_are_made_for_each_run():
    agent = PydanticAgent(TestModel(), deps_type=str)
    seen: list[str] = []

    @agent.tool
    def who(ctx: RunContext[str]) -> str:
        seen.append(ctx.deps)
        return ctx.deps

    def deps(brief: Brief) -> str:
        return f"{brief.agent} of {brief.thread}"

    async with Meantime.open(":memory:", agents={"explore": PythonAgent(agent, deps=deps)}) as mt:
        await (await mt.thread("t").start(Agent("explore", "go"))).result()
        assert seen == ["explore of t"]


async def test_an_agent_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_agents_on_disk.py").write_text(
        "from pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n"
        "agent = Agent(TestModel(custom_output_text='found'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named = AgentSettings(runner="python", agent="my_agents_on_disk:agent")
    async with Meantime.open(":memory:", agents={"named": named}) as mt:
        assert await (await mt.thread("t").start(Agent("named", "go"))).result() == "found"


async def test_a_history_processor_may_rewrite_everything(ledger: str):
    script = Script("one", "two", "three")
    agent = PydanticAgent(script.model, capabilities=[ProcessHistory(lambda messages: messages[-1:])])
    async with Meantime.open(ledger, agents={"brief": agent}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("brief", "a"))
        for prompt in ("b", "c"):
            await handle.result()
            await thread.resume(handle, prompt)
        assert await handle.result() == "three"
        assert script.asked[-1].prompts == ["c"]


async def test_an_agent_that_is_handed_over_as_work_is_to_be_named(ledger: str):
    async with Meantime.open(ledger) as mt:
        for given in (PydanticAgent(TestModel()), PythonAgent(PydanticAgent(TestModel()))):
            with pytest.raises(InvalidInput, match="is not work") as caught:
                await mt.thread("t").start(given)  # type: ignore[arg-type]
            assert 'open(…, agents={"explore": agent})' in caught.value.hint
            assert 'thread.start(Agent("explore", "…"))' in caught.value.hint
