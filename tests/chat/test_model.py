"""The chat with a model: Pydantic AI's own test models, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.waiting import LIMIT, until_async

from gates import Gate
from meantime import Meantime, Thread
from meantime.runners.shell.shell_work import Shell
from meantime.surfaces.chat.chat_tools import ChatTools
from meantime.surfaces.chat.chat_transcript import ChatTranscript
from meantime.surfaces.chat.model_agent import CUT_OFF, ModelAgent
from meantime.surfaces.chat.work_handoff import WorkHandoff
from meantime.testing import FakeSessionRunner, Reply
from meantime.toolset.work_catalog import GivenWorks

pytestmark = pytest.mark.anyio


class Talker:
    """A conversation without a screen. `shown` is what would be on it."""

    def __init__(self, thread: Thread, model: Model, agents: list[str] | None = None) -> None:
        tasks: Any = thread._tasks
        self.thread = thread
        self.shown: list[str] = []
        self.hands = WorkHandoff(tasks, thread, GivenWorks(tasks, agents, commands=Shell))
        self.model = model
        self.conversation = ChatTranscript(thread, self.hands.speech)

    async def agent(self) -> ModelAgent:
        tools = ChatTools(self.hands, self.shown.extend)
        return ModelAgent(self.model, tools, await tools.offered(), self.shown.extend)

    async def turn(self, *said: str) -> None:
        async with self.thread.turn(reads_settle=False) as turn:
            await self.conversation.hold(turn, turn.notices, said)
            await (await self.agent()).take(turn, self.conversation)

    @property
    def screen(self) -> str:
        return "\n".join(self.shown)


class Script:
    """A model that gives these answers, one after the other, and remembers what it was asked."""

    def __init__(self, *steps: ModelResponse | Callable[[], ModelResponse]) -> None:
        self._steps = list(steps)
        self.asked: list[list[ModelMessage]] = []
        self.instructions: list[str] = []
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(list(messages))
        self.instructions.append(info.instructions or "")
        step = self._steps.pop(0)
        return step if isinstance(step, ModelResponse) else step()

    def prompts(self, question: int = -1) -> list[str]:
        """What the model was shown as said to it, in one question."""
        found: list[str] = []
        for message in self.asked[question]:
            if isinstance(message, ModelRequest):
                found += [str(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
        return found


def says(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


def runs(command: str, **more: Any) -> ModelResponse:
    return ModelResponse([ToolCallPart("run", {"command": command, **more})])


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[Thread]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt.thread("talk")


@pytest.mark.behaviour("N2")
async def test_it_hands_off_and_is_told_once(thread: Thread):
    script = Script(
        runs("echo found it", **{"async": True}), says("It runs."), says("It is done."), says("Yes.")
    )
    talker = Talker(thread, script.model)
    await talker.turn("look for it")
    assert "Launched async task: echo found it" in talker.screen
    (task,) = await thread.list("all")
    await thread.wait(task)
    await talker.turn()
    await talker.turn("really?")

    notes = [text for text in script.prompts() if "System Note" in text]
    assert len(notes) == 1
    assert json.loads(notes[0].partition(":\n")[2].removesuffix("\n---"))["final_message"] == "found it\n"
    assert script.prompts()[0] == "look for it"
    assert script.prompts()[-1] == "really?"


async def test_llxprt_what_the_model_is_told_about_a_launch(thread: Thread):
    script = Script(runs("true", **{"async": True}), says("ok"))
    await Talker(thread, script.model).turn("go")
    (task,) = await thread.list("all")
    last = script.asked[-1][-1]
    (result,) = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    assert result.content == (
        f"Async task 'true' launched with ID {task.id}. The task is now running in the background. "
        "You will be notified when it completes. Use check_async_tasks to monitor progress."
    )


@pytest.mark.behaviour("N6")
async def test_what_ends_in_the_middle_of_a_turn_is_in_the_next_question(thread: Thread, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    script = Script(
        runs("echo slow one", **{"async": True}),
        runs(gate.wait),  # in the foreground; the other one ends meanwhile
        says("Both are through."),
    )
    talker = Talker(thread, script.model)
    taking = asyncio.create_task(talker.turn("both, please"))
    await until_async(lambda: thread.list("completed"), "the other one has ended")
    await asyncio.to_thread(gate.open)
    await taking
    assert len(script.asked) == 3
    assert "Async task 'echo slow one' completed" in script.prompts()[-1]
    async with thread.turn() as turn:
        assert turn.notices == [], "told, and saved, at the boundary"


@pytest.mark.behaviour("N7")
async def test_every_question_has_the_reminder(thread: Thread):
    script = Script(runs("sleep 600", **{"async": True}), says("It runs."))
    talker = Talker(thread, script.model)
    await talker.turn("go")
    assert "Async tasks status" not in script.instructions[0]
    assert "System Note: Async tasks status:\nRunning: [" in script.instructions[1]
    await thread.cancel_all()


async def test_a_call_that_is_waited_for_can_be_sent_away(thread: Thread):
    script = Script(runs("sleep 600"), says("It goes on without me."))
    talker = Talker(thread, script.model)
    taking = asyncio.create_task(talker.turn("now"))
    await until_async(talker.hands.to_background, "the call has begun")
    await taking
    assert "Launched async task: sleep 600" in talker.screen
    assert len(await thread.list()) == 1
    await thread.cancel_all()


async def test_failing_and_odd_calls_are_answers(thread: Thread):
    script = Script(
        runs("echo oh no; exit 3"),
        runs("sleep 600", timeout_seconds=0.1),
        runs("true", cwd="/nowhere/at/all"),
        ModelResponse([ToolCallPart("check_async_tasks", {"task_id": "nonesuch"})]),
        ModelResponse([ToolCallPart("check_async_tasks", {})]),
        says("enough"),
    )
    talker = Talker(thread, script.model)
    await talker.turn("try")
    results = [
        str(part.content)
        for message in script.asked[-1]
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert "oh no" in results[0]
    assert results[1].startswith("It failed.")
    assert "/nowhere/at/all" in results[2]
    assert results[3:] == ["Task not found: nonesuch", "No async tasks."]


@pytest.mark.behaviour("M3")
async def test_a_refused_start_is_an_answer_to_the_model(thread: Thread):
    script = Script(runs("sleep 600", **{"async": True}), runs("true", **{"async": True}), says("later then"))
    talker = Talker(thread, script.model)
    talker.hands.allow(1)
    await talker.turn("two, please")
    result = script.asked[-1][-1].parts[0]
    assert isinstance(result, ToolReturnPart)
    assert result.content == (
        "Cannot launch async task: maximum concurrent async tasks (1) reached. Currently 1 tasks running. "
        "Wait for tasks to complete or use check_async_tasks to review."
    )
    assert "[ERROR] Max async tasks (1) reached - 1 running" in talker.screen
    await thread.cancel_all()


def asks_agent(**more: Any) -> ModelResponse:
    given = {"subagent_name": "explore", "goal_prompt": "find it", **more}
    return ModelResponse([ToolCallPart("task", given)])


@pytest.mark.behaviour("F1")
async def test_it_starts_agents_and_is_told_once(tmp_path: Path):
    """Those that are configured, by their names; a call that waits has the subagent's answer."""
    agents = FakeSessionRunner({"explore": Reply("4 modules", emits={"count": 4})})
    script = Script(asks_agent(**{"async": True}), says("It runs."), asks_agent(), says("4 and 4."))
    async with Meantime.open(tmp_path / "agents.db", runners=[agents]) as mt:
        thread = mt.thread("talk")
        talker = Talker(thread, script.model, ["explore"])
        await talker.turn("how many?")
        (task,) = await thread.list("all")
        assert (task.work.kind, task.work.name) == ("agent", "explore")
        await thread.wait(task)
        await talker.turn()
    (note,) = (text for text in script.prompts() if "System Note" in text)
    assert f'"agent_id": "{task.id}"' in note
    last = script.asked[-1][-1]
    (result,) = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    answer = json.loads(str(result.content))
    assert (answer["emitted_vars"], answer["final_message"]) == ({"count": 4}, "4 modules")
    assert "● task  explore: find it" in talker.screen
    assert "Launched async task: explore (" in talker.screen
    assert "└ 4 modules" in talker.screen


async def test_an_agent_that_is_not_configured_is_an_answer(thread: Thread):
    script = Script(asks_agent(), says("There is none."))
    talker = Talker(thread, script.model, ["other"])
    await talker.turn("go")
    result = script.asked[-1][-1].parts[0]
    assert isinstance(result, ToolReturnPart)
    assert result.content == "not_found: There is no agent 'explore' to start.\nThere are: other."


async def test_the_conversation_goes_on_in_another_life(thread: Thread):
    first = Script(runs("echo 42"), says("It is 42."))
    await Talker(thread, first.model).turn("what is it?")

    second = Script(says("I said 42."))
    again = Talker(thread, second.model)
    await again.conversation.load()
    assert not again.conversation.is_owed
    await again.turn("what did you say?")
    shown = second.asked[0]
    assert second.prompts() == ["what is it?", "what did you say?"]
    assert any(
        isinstance(part, ToolReturnPart) and "42" in str(part.content) for m in shown for part in m.parts
    )


@pytest.mark.behaviour("P3")
async def test_a_call_that_was_cut_off_is_not_made_again(thread: Thread):
    """Killed while a tool ran: the next life knows of the call, and that it was cut off."""

    def die() -> ModelResponse:
        raise asyncio.CancelledError

    first = Script(runs("echo once", **{"async": True}), die)
    with pytest.raises(asyncio.CancelledError):
        await Talker(thread, first.model).turn("do it")

    # What a kill leaves: the call is saved, its result is not.
    entries = await thread.transcript.entries()
    assert [entry.message.role for entry in entries] == ["user", "setting", "assistant", "tool"]
    second = Script(says("I see that it runs."))
    again = Talker(thread, second.model)
    again.conversation.entries = list(entries[:3])
    await again.turn()
    results = [p for m in second.asked[0] for p in m.parts if isinstance(p, ToolReturnPart)]
    assert [result.content for result in results] == [CUT_OFF]


@pytest.mark.parametrize(
    "problem", [ModelHTTPError(529, "scripted", {"error": "overloaded"}), OSError("no route"), ValueError()]
)
async def test_a_model_that_fails_says_so_and_is_asked_again_later(thread: Thread, problem: Exception):
    def fail() -> ModelResponse:
        raise problem

    script = Script(fail, says("There I am."))
    talker = Talker(thread, script.model)
    await talker.turn("hello?")
    assert "The model did not answer: " in talker.screen
    assert talker.conversation.is_owed
    await talker.turn("now?")
    assert script.prompts() == ["hello?", "now?"]


async def test_a_model_that_calls_everything_with_anything(thread: Thread):
    """Pydantic AI's TestModel makes arguments from the schemas: whatever they are, it ends with an answer."""
    talker = Talker(thread, TestModel())
    await talker.turn("go")
    assert talker.conversation.entries[-1].message.role == "assistant"
    await thread.wait(timeout=LIMIT)


async def test_a_long_conversation_is_cut_at_its_beginning(thread: Thread, monkeypatch: pytest.MonkeyPatch):
    from meantime.surfaces.chat import model_agent

    monkeypatch.setattr(model_agent, "MOST", 3_000)
    talker = Talker(thread, Script(*[says("x" * 200)] * 10).model)
    for number in range(9):
        await talker.turn(f"question {number}")
    last = Script(says("y"))
    talker.model = last.model
    await talker.turn("the last question")
    assert "question 0" not in last.prompts()
    assert last.prompts()[-2:] == ["question 8", "the last question"]
    assert isinstance(last.asked[0][0], ModelRequest)
