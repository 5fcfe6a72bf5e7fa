"""A Pydantic AI agent that talks passes every check of the public suite. The other frameworks are in an
environment of their own: tests/frameworks."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel
from tests.integrations.pydantic_ai.pydantic_site import PydanticSite

from meantime import Meantime, Thread
from meantime.integrations.framework_talk import turn_lock
from meantime.integrations.pydantic_ai import Talk
from meantime.testing import exercise_talk
from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture

pytestmark = pytest.mark.anyio
TABLE = Path(__file__).parents[1] / "frameworks" / "say_table.py"  # read by the tests of the others, too


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_pydantic_ai(check: Check, tmp_path: Path):
    await check(TalkFixture(PydanticSite(tmp_path)))


async def test_the_guide_says_what_comes_out_of_say(tmp_path: Path):
    spec = importlib.util.spec_from_file_location("say_table", TABLE)
    assert spec is not None
    assert spec.loader is not None
    table: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # its types are looked up there
    spec.loader.exec_module(table)
    await table.check_row("Pydantic AI", PydanticSite(tmp_path))


async def test_a_talk_that_forgets_to_ack_is_named_with_its_check(tmp_path: Path):
    class Forgetful(Talk):
        async def _settle(self, turn: object) -> None: ...

    class Site(PydanticSite):
        def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
            return Forgetful(Agent(FunctionModel(self.answer)), thread, *functions, **options)

    @asynccontextmanager
    async def made() -> AsyncIterator[PydanticSite]:
        yield Site(tmp_path)

    with pytest.raises(AssertionError, match=r"^a_slow_one_goes_on_and_the_agent_is_woken_and_told_once: "):
        await exercise_talk(made)


async def test_a_conversation_has_one_lock_in_each_meantime_that_is_gone_with_its_last_talk(tmp_path: Path):
    site = PydanticSite(tmp_path)
    async with Meantime.open(":memory:") as mt, Meantime.open(":memory:") as other:
        talks = [site.talk(mt.thread("t")), site.talk(mt.thread("t")), site.talk(other.thread("t"))]
        locks = [talk._lock for talk in talks]  # pyright: ignore[reportPrivateUsage]
        assert locks[0] is locks[1] is not locks[2]
        talks.clear()
        locks.clear()
        gc.collect()
        assert not turn_lock._LOCKS  # pyright: ignore[reportPrivateUsage]
