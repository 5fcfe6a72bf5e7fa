"""Every dialect passes every check of the public conformance suite."""

from __future__ import annotations

import pytest

from meantime.dialects import dialect, names
from meantime.dialects.meantime import Meantime
from meantime.kernel.errors import NotFound
from meantime.kernel.lifecycle import Status
from meantime.kernel.notices import Message, Notice, Part
from meantime.ports.dialect import Offer, Policy
from meantime.testing import DIALECT_CHECKS, exercise_dialect
from meantime.testing.dialect.suite import Check

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", DIALECT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", names())
async def test_H22_dialect(name: str, check: Check) -> None:
    await check(dialect(name))


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
