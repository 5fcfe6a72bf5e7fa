"""Every dialect passes every check of the public conformance suite."""

from __future__ import annotations

import pytest

from meantime.dialects import dialect, names
from meantime.dialects.meantime import Meantime
from meantime.kernel.errors import NotFound
from meantime.kernel.lifecycle import Status
from meantime.kernel.notices import Message, Notice, Part
from meantime.ports import asks
from meantime.ports.dialect import Offer, Policy, Said
from meantime.surfaces.chat.chat_dialect import Speech
from meantime.surfaces.http.task_encoding import word
from meantime.testing import DIALECT_CHECKS, exercise_dialect
from meantime.testing.dialect.dialect_suite import Check
from meantime.toolset.arguments import Arguments, tool

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("H22")
@pytest.mark.parametrize("check", DIALECT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", names())
async def test_every_dialect_passes_the_conformance_suite(name: str, check: Check) -> None:
    await check(dialect(name))


@pytest.mark.behaviour("H22")
@pytest.mark.parametrize("check", DIALECT_CHECKS, ids=lambda check: check.__name__)
async def test_the_dialect_of_the_chat_passes_the_conformance_suite(check: Check) -> None:
    """Seed 002's, with a tool of its own."""
    await check(Speech())


async def test_every_check_is_run() -> None:
    await exercise_dialect("meantime")


def test_a_dialect_that_there_is_not_names_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"There are: .*meantime"):
        dialect("klingon")


class Raw(Meantime):
    """Puts what a task said into its message as it is."""

    def message(self, notice: Notice) -> Message:
        return Message("user", (Part(notice.text or "nothing"),))


class Partial(Meantime):
    def status(self, status: Status, run: int) -> str:
        return {Status.RUNNING: "running"}.get(status, "")


class Insistent(Meantime):
    """Offers everything, whatever it is told."""

    def tools(self, offer: Offer):
        return super().tools(Offer(agents=()))


class Settling(Meantime):
    policy = Policy(reads_settle=False)


@pytest.mark.parametrize(
    ("planted", "noticed"),
    [
        (Raw(), "every_ending_has_a_message.*lets"),
        (Partial(), "every_status_has_a_word: .* has no word"),
        (Insistent(), "what_is_not_offered_is_gone: start"),
    ],
)
async def test_a_dialect_that_breaks_the_contract_is_noticed(planted: Meantime, noticed: str) -> None:
    with pytest.raises(AssertionError, match=noticed):
        await exercise_dialect(planted)


async def test_the_toolset_keeps_a_policy_that_the_dialect_forgets() -> None:
    await exercise_dialect(Settling())


STATUSES = {
    # DESIGN: one table for all; "resumed" is whatever is active in a later run
    "background": "running running resumed resumed running running completed error cancelled error error",
    "asyncagents": "running running resumed resumed running running completed error cancelled error error",
    "meantime": "queued running queued running waiting cancelling completed failed cancelled timed_out lost",
    "llxprt": "running running running running running running completed failed cancelled failed failed",
    "jaato": "pending running pending running running running completed failed cancelled timeout failed",
    "psi": "running running running running running pending_cancel "
    "completed failed cancelled timed_out failed",
}
KERNEL = [
    (Status.QUEUED, 1), (Status.RUNNING, 1), (Status.QUEUED, 2), (Status.RUNNING, 2), (Status.WAITING, 1),
    (Status.CANCELLING, 1), (Status.COMPLETED, 1), (Status.FAILED, 1), (Status.CANCELLED, 1),
    (Status.TIMED_OUT, 1), (Status.LOST, 1),
]  # fmt: skip


@pytest.mark.behaviour("H22", "R1")
@pytest.mark.parametrize("name", names())
def test_every_status_is_called_what_the_seed_calls_it(name: str) -> None:
    assert " ".join(dialect(name).status(status, run) for status, run in KERNEL) == STATUSES[name]


def test_the_wire_of_seed_001_and_its_dialect_say_the_same() -> None:
    for status in Status:
        for run in (1, 2):
            assert word(status, run > 1) == dialect("asyncagents").status(status, run)


class Loose(Meantime):
    """Keeps its texts clean, and not its data."""

    def tools(self, offer: Offer):
        def say(ask: asks.List, answer: asks.Answer) -> Said:
            return Said("done", data=[{"title": task.title} for task in answer.tasks])

        every = asks.List(statuses=frozenset(Status))
        return [tool("look", "Looks.", Arguments, lambda given: every, say, reads=True)]


async def test_data_that_is_not_cleaned_is_noticed() -> None:
    with pytest.raises(AssertionError, match="what_tasks_said_is_cleaned: the data of look lets"):
        await exercise_dialect(Loose())
