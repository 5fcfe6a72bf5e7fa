"""A request of an agent is asked once, and withdrawn if nobody needs its answer any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime.integrations.agent_host.turn_questions import TurnQuestions
from meantime.kernel.questions import PERMISSION, Question, Reply, allowed, declined, permission, rejected
from meantime.testing.session_host.host_fixture import Recorder

pytestmark = pytest.mark.anyio
QUESTION = permission("q1", "bash", detail="rm x")


class Patient(Recorder):
    """A person who answers when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.asked = asyncio.Event()
        self.withdrawn = 0

    async def ask(self, question: Question) -> Reply:
        self.questions.append(question)
        self.asked.set()
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


async def asked(hearer: Patient, questions: TurnQuestions) -> asyncio.Future[Reply | None]:
    asking = asyncio.ensure_future(questions.ask(QUESTION))
    async with asyncio.timeout(LIMIT):
        await hearer.asked.wait()
    return asking


async def answer(asking: asyncio.Future[Any]) -> Any:
    async with asyncio.timeout(LIMIT):
        return await asking


def test_a_permission_is_a_question_about_its_tool():
    assert (QUESTION.text, QUESTION.subject, QUESTION.kind) == (
        "May it use bash: rm x?",
        "bash",
        "permission",
    )
    assert QUESTION.choices == PERMISSION
    assert permission("q", "bash", verb="call").text == "May it call bash?"


def test_no_answer_and_a_refusal_are_declined_and_a_permission_is_not():
    assert declined(rejected(QUESTION, "no", by="user", now=0.0))
    assert declined(Reply(question="q1", by="nobody"))
    assert not declined(allowed(QUESTION, by="user", now=0.0))
    assert not declined(Reply(question="q1", text="blue", by="user"))


async def test_an_answer_reaches_who_asked():
    hearer = Patient()
    asking = await asked(hearer, TurnQuestions(hearer))
    hearer.answer.set_result(allowed(QUESTION, by="user", now=0.0))
    reply = await answer(asking)
    assert reply is not None
    assert reply.allows


async def test_the_end_of_a_turn_withdraws_its_questions_and_asks_no_more():
    hearer = Patient()
    questions = TurnQuestions(hearer)
    asking = await asked(hearer, questions)
    questions.end()
    assert await answer(asking) is None
    assert hearer.withdrawn == 1
    assert await questions.ask(permission("q2", "bash")) is None
    assert [one.id for one in hearer.questions] == ["q1"]


async def test_a_caller_that_is_cancelled_withdraws_its_question():
    hearer = Patient()
    asking = await asked(hearer, TurnQuestions(hearer))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer(asking)
    await until_async(lambda: hearer.withdrawn == 1, "the question is withdrawn")


async def test_a_request_that_the_wire_repeats_is_asked_once():
    hearer = Patient()
    questions = TurnQuestions(hearer)
    first = questions.begin("q1", lambda: hearer.ask(QUESTION))
    assert questions.begin("q1", lambda: hearer.ask(QUESTION)) is first
    hearer.answer.set_result(allowed(QUESTION, by="user", now=0.0))
    await answer(first)
    assert questions.begin("q1", lambda: hearer.ask(QUESTION)) is first
    assert len(hearer.questions) == 1


async def test_a_request_that_the_wire_has_no_more_is_withdrawn():
    hearer = Patient()
    questions = TurnQuestions(hearer)
    gone = questions.begin("q1", lambda: hearer.ask(QUESTION))
    there = questions.begin("q2", lambda: hearer.ask(permission("q2", "bash")))
    await until_async(lambda: len(hearer.questions) == 2, "both are asked")
    questions.withdraw_all_but({"q2"})
    with pytest.raises(asyncio.CancelledError):
        await answer(gone)
    assert not there.cancelled()
    questions.end()


async def test_an_exchange_is_not_stopped_by_its_own_answer():
    """The wire tells us of our own answer, too."""
    hearer = Patient()
    questions = TurnQuestions(hearer)

    async def exchange() -> str:
        questions.withdraw("q1")
        await asyncio.sleep(0)
        return "answered"

    assert await answer(questions.begin("q1", exchange)) == "answered"
