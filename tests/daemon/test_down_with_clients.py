"""`meantime down` while programs are connected: it stays down until one of them needs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

import pytest
from tests.waiting import until_async

from meantime import LeaseLost, Meantime, MeantimeError, Shell
from meantime.daemon.owner_process import owner

from .conftest import Place

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.fixture
def home(place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Place:
    caplog.set_level(logging.DEBUG, "meantime")
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    return place


async def stays_down(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """However often it is looked for."""
    caplog.clear()
    await until_async(lambda: caplog.text.count("cannot be reached") >= 3, "it was looked for three times")
    assert owner(place.home) is None


async def test_the_next_verb_starts_it_again(home: Place, caplog: pytest.LogCaptureFixture):
    async with Meantime.connect() as mt:
        thread = mt.thread("conv-1")
        done = await thread.start(Shell("true"))
        await thread.wait(done)
        listening = asyncio.ensure_future(anext(aiter(mt.thread("other").wakeups())))
        async with thread.turn() as turn:
            assert (await asyncio.to_thread(home.cli, "down")).returncode == 0
            await stays_down(home, caplog)
            acked = asyncio.ensure_future(turn.ack())  # the rest of a turn: it waits, and starts nothing
            await stays_down(home, caplog)
            assert not acked.done()
            assert [task.id for task in await thread.list("all")] == [done.id]
            leader = owner(home.home)
            assert leader is not None
            assert leader.is_daemon
            with pytest.raises(LeaseLost):  # a daemon that ends gives turns back: it is told again
                await acked
        listening.cancel()


async def test_one_that_was_killed_is_started_at_once(home: Place):
    """Nobody asked for that: what runs here has endings to tell."""
    async with Meantime.connect() as mt:
        await mt.list()
        killed = home.kill()
        await until_async(
            lambda: (leader := owner(home.home)) and leader.pid != killed, "another daemon owns the ledger"
        )


async def test_a_program_that_starts_none_says_what_to_do(home: Place):
    home.up()
    async with Meantime.connect(start=False, patience=0.5) as mt:
        await mt.list()
        home.down(signal.SIGTERM)
        with pytest.raises(ConnectionError) as lost:
            await mt.list()
        assert isinstance(lost.value, MeantimeError)
        assert "meantime up" in lost.value.hint
        assert owner(home.home) is None
        home.up()

        async def is_met() -> bool:
            with contextlib.suppress(ConnectionError):
                return await mt.list() == []
            return False

        await until_async(is_met, "the connected program has found the new daemon")
