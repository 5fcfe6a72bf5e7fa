"""A function of a connected process asks, too: at the owner's doors, and over a lost connection."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Refused, current
from meantime.kernel.questions import Choice, Question
from runtimes import runtime_of

from .pair import Pair

pytestmark = pytest.mark.anyio
WHICH = Question(id="q1", text="Which colour?", choices=(Choice("red"), Choice("blue")))


async def choose() -> str:
    reply = await current().ask(WHICH)
    return f"{reply.choices[0]} by {reply.by}"


def waiting(pair: Pair, id: str) -> bool:
    return runtime_of(pair.owner).record.live[id].question is not None


@pytest.mark.behaviour("L28")
async def test_a_function_of_a_connected_process_asks(pair: Pair) -> None:
    handle = await pair.mt.thread("a").start(Call(choose))
    await until_async(lambda: waiting(pair, handle.id), "the question is there")
    assert (await pair.mt.get(handle.id)).question.text == "Which colour?"
    await pair.mt.answer(handle.id, "blue")
    assert await handle.result() == "blue by user"


@pytest.mark.behaviour("L28")
async def test_an_answer_that_came_while_the_connection_was_lost_is_heard(pair: Pair) -> None:
    handle = await pair.mt.thread("a").start(Call(choose))
    await until_async(lambda: waiting(pair, handle.id), "the question is there")
    pair.cut()
    await pair.owner.answer(handle.id, "red")
    assert await handle.result() == "red by user"
    assert len((await pair.owner.get(handle.id)).answers) == 1


@pytest.mark.behaviour("L28")
async def test_a_question_outlives_its_owner(pair: Pair) -> None:
    handle = await pair.mt.thread("a").start(Call(choose))
    await until_async(lambda: waiting(pair, handle.id), "the question is there")
    await pair.owner.close()
    await pair.open_owner()
    assert (await pair.owner.get(handle.id)).status == "waiting"
    await pair.owner.answer(handle.id, "red")
    assert await handle.result() == "red by user"


@pytest.mark.behaviour("L28")
async def test_a_function_that_waits_for_an_answer_can_be_cancelled(pair: Pair) -> None:
    handle = await pair.mt.thread("a").start(Call(choose))
    await until_async(lambda: waiting(pair, handle.id), "the question is there")
    assert (await handle.cancel(wait=True)).task.status == "cancelled"


@pytest.mark.behaviour("L28")
async def test_a_call_that_somebody_waits_for_cannot_ask(pair: Pair) -> None:
    with pytest.raises(Refused, match="somebody waits for"):
        await asyncio.wait_for(pair.mt.thread("a").call(Call(choose)), LIMIT)


@pytest.mark.behaviour("L28")
async def test_a_withdrawn_question_is_open_no_longer(pair: Pair) -> None:
    give_up, go_on = asyncio.Event(), asyncio.Event()

    async def ask_and_give_up() -> str:
        asking = asyncio.ensure_future(current().ask(WHICH))
        await give_up.wait()
        asking.cancel()
        current().withdraw("q1")
        await go_on.wait()
        return "went on"

    handle = await pair.mt.thread("a").start(Call(ask_and_give_up))
    await until_async(lambda: waiting(pair, handle.id), "the question is there")
    give_up.set()
    await until_async(lambda: not waiting(pair, handle.id), "the question is gone")
    go_on.set()
    assert await handle.result() == "went on"
