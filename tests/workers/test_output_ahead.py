"""Delays of a worker's run that nothing needs: output comes with the wake, an ending waits for no thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Shell, Status
from meantime.kernel.model import Chunk, Claim
from meantime.testing import FakeClock
from meantime.workers import output_ahead, worker_run
from meantime.workers.messages import AnswerMessage, FromOwner
from meantime.workers.output_ahead import AHEAD, FRESH, MOST_AHEAD, OutputAhead

from . import jobs
from .conftest import PLACE, Site

pytestmark = pytest.mark.anyio
CLAIM = Claim("w1", "home", "boot", "nonce")
LINES = 8


def _chunk(text: bytes, offset: int = 0) -> Chunk:
    return Chunk(text, offset, offset + len(text), offset + len(text))


def _counted(site: Site, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The requests of the owner, by the kinds of their messages."""
    sent: Counter[str] = Counter()
    tell = site.pools._requests._tell

    def told(claim: Claim, message: FromOwner) -> None:
        sent[type(message).__name__] += 1
        tell(claim, message)

    monkeypatch.setattr(site.pools._requests, "_tell", told)
    return sent


async def _echoed(site: Site) -> str:
    """A command says each line that it is sent, and is followed meanwhile."""
    work = Shell("while read x; do echo $x; done", open_stdin=True)
    handle = await site.mt.thread("a").start(work, place=PLACE)
    seen = ""

    async def send() -> None:
        for number in range(LINES):
            await until_async(lambda n=number: len(seen.splitlines()) >= n, "the line before is seen")
            await handle.send(f"{number}\n", eof=number == LINES - 1)

    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    async with asyncio.timeout(LIMIT):
        sending = asyncio.create_task(send())
        async for piece in handle.log.follow():
            seen += piece.text
        await sending
    return seen


async def test_a_followed_line_comes_with_the_wake(site: Site, monkeypatch: pytest.MonkeyPatch):
    """One read then finds nothing more, before the next wait: the line itself needs none."""
    monkeypatch.setattr(output_ahead, "FRESH", LIMIT)  # a busy machine is slower than a second
    await site.open()
    await site.worker()
    sent = _counted(site, monkeypatch)
    assert await _echoed(site) == "".join(f"{number}\n" for number in range(LINES))
    assert sent["ReadMessage"] <= LINES + 5  # two at its beginning, and copies of its files at its end


async def test_a_worker_that_answers_without_output_is_asked_for_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    await site.open()
    await site.worker()
    answered = site.pools._requests.answered

    def as_before(answer: AnswerMessage) -> None:
        bare = AnswerMessage(ask=answer.ask, changed=True) if answer.changed else answer
        answered(bare)

    monkeypatch.setattr(site.pools._requests, "answered", as_before)
    assert await _echoed(site) == "".join(f"{number}\n" for number in range(LINES))


async def test_an_ending_of_a_function_waits_for_no_thread(site: Site, monkeypatch: pytest.MonkeyPatch):
    mt = await site.open()
    await site.worker()
    asked: list[str] = []
    to_thread = asyncio.to_thread

    def counted(function: Callable[..., object], *args: object) -> Awaitable[object]:
        asked.append(function.__module__)
        return to_thread(function, *args)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    answer = await handle.cancel(wait=True)
    assert answer.task.status is Status.CANCELLED
    assert worker_run.__name__ not in asked


def test_output_that_came_ahead_is_for_one_read():
    ahead = OutputAhead(FakeClock())
    ahead.keep(CLAIM, "both", 5, _chunk(b"a line\n", 5))
    assert ahead.take(CLAIM, "stdout", 5, AHEAD) is None
    assert ahead.take(CLAIM, "both", 4, AHEAD) is None
    found = ahead.take(CLAIM, "both", 5, AHEAD)
    assert found is not None
    assert found.data == b"a line\n"
    assert ahead.take(CLAIM, "both", 5, AHEAD) is None


async def test_output_that_is_older_than_a_second_is_read_again():
    clock = FakeClock()
    ahead = OutputAhead(clock)
    ahead.keep(CLAIM, "both", 0, _chunk(b"old"))
    await clock.advance(FRESH + 0.1)
    assert ahead.take(CLAIM, "both", 0, AHEAD) is None


def test_a_reader_of_less_is_not_given_more():
    ahead = OutputAhead(FakeClock())
    ahead.keep(CLAIM, "both", 0, _chunk(b"longer"))
    assert ahead.take(CLAIM, "both", 0, 3) is None


def test_output_ahead_is_bounded():
    ahead = OutputAhead(FakeClock())
    ahead.keep(CLAIM, "both", 0, _chunk(b"x" * (AHEAD + 1)))
    assert ahead.take(CLAIM, "both", 0, 1 << 20) is None
    for offset in range(MOST_AHEAD + 1):
        ahead.keep(CLAIM, "both", offset, _chunk(b"x", offset))
    assert ahead.take(CLAIM, "both", 0, AHEAD) is None
    assert ahead.take(CLAIM, "both", 1, AHEAD) is not None
