"""Every error of a public verb is a MeantimeError, with a text that can be shown and stored."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, Meantime, MeantimeError, Shell, Thread
from meantime.kernel.argument_checks import MOST_GIVEN, SHOWN, check_all, check_path, shown

pytestmark = pytest.mark.anyio


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("not today")

    __str__ = __repr__


class Odd(str):
    """A text that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not today")

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


class Word(enum.StrEnum):
    RUNNING = "running"


def deep(levels: int = 100_000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


STRANGE: dict[str, Any] = {
    "a number": 5,
    "None": None,
    "unprintable": Mute(),
    "a list of something unprintable": [Mute()],
    "deep": deep(),
    "an int of 5,001 digits": 10**5_000,
    "a lone surrogate": "\ud800",
    "a huge text": "x" * 1_000_000,
}
VERBS: dict[str, Callable[[Thread, Any], Any]] = {
    "list": lambda thread, given: thread.list(status=5 if given is None else given),  # pyright: ignore[reportArgumentType]
    "wait until": lambda thread, given: thread.wait(until=given),
    "output wait": lambda thread, given: thread.output("x", wait=given),
    "cancel wait": lambda thread, given: thread.cancel("x", wait=given),
    "get": lambda thread, given: thread.get(given),
    "start": lambda thread, given: thread.start(given),
    "timeout": lambda thread, given: thread.start(Call(int), timeout=0 if given is None else given),
    "retry": lambda thread, given: thread.start(Call(int), retry=given),
    "interrupt": lambda thread, given: thread.interrupt(given),
    "reminder": lambda thread, given: thread.reminder("zebra" if given is None else given),
    "answer": lambda thread, given: thread.answer("x", given),
}


@pytest.fixture(params=["memory", "connected"])
async def mt(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "memory":
        async with Meantime.open(":memory:") as mt:
            yield mt
        return
    async with Meantime.open(":memory:", link=tmp_path / "link"), Meantime.connect(tmp_path / "link") as mt:
        yield mt


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("verb", VERBS)
async def test_a_strange_value_is_an_error_of_ours(mt: Meantime, verb: str, strange: str):
    if (verb, strange) == ("timeout", "a number"):
        return  # a good one
    with pytest.raises(MeantimeError) as caught:
        await VERBS[verb](mt.thread("conv-1"), STRANGE[strange])
    assert len(str(caught.value).encode()) < 1_000


@pytest.mark.parametrize("strange", STRANGE)
async def test_a_turn_and_a_transcript_are_told_apart_from_everything_else(mt: Meantime, strange: str):
    thread, given = mt.thread("conv-1"), STRANGE[strange]
    async with thread.turn() as turn:
        for verb in (
            lambda: turn.read(given),
            lambda: turn.boundary(read=given),
            lambda: turn.ack(transcript=given or 5),  # pyright: ignore[reportArgumentType]
            lambda: turn.ack(given),
        ):
            with pytest.raises(MeantimeError):
                await verb()
    with pytest.raises(MeantimeError):
        thread.transcript.add(given or 5, "hello")  # pyright: ignore[reportArgumentType]
    await thread.transcript.save()  # what was refused does not hold up the rest
    assert await thread.transcript.messages() == []


@pytest.mark.parametrize("env", [{"A": "\ud800"}, {"\ud800": "a"}, {"A": Mute()}], ids=range(3))
async def test_a_lone_surrogate_in_an_environment_is_refused(env: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Shell("true", env=env)


async def test_a_lone_surrogate_in_this_process_s_environment_does_not_stop_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MEANTIME_TEST_ODD", "\udcff")
    async with Meantime.open(tmp_path / "work.db") as mt:
        handle = await mt.thread("conv-1").start(Shell('printf "%s" "$MEANTIME_TEST_ODD" | wc -c'))
        assert str(await handle.result(LIMIT)).strip() == "1"


async def test_a_kind_of_text_is_taken_as_its_text(mt: Meantime):
    thread = mt.thread(Word.RUNNING)
    assert type(thread.id) is str
    handle = await thread.start(Call(int, "7"), id=Odd("odd"))
    assert await handle.result(LIMIT) == 7
    assert (await thread.get(Odd("odd"))).id == "odd"
    assert await thread.list(Word.RUNNING) == []


async def test_another_event_loop_is_refused(mt: Meantime):
    thread = mt.thread("conv-1")
    handle = await thread.start(Call(int, "7"))
    await handle.wait(LIMIT)
    async with thread.turn() as turn:
        for verb in (turn.ack, turn.boundary, turn.renew, turn.close, handle.get, thread.list, mt.close):
            with pytest.raises(InvalidInput, match="another event loop"):
                await asyncio.to_thread(lambda verb=verb: asyncio.run(verb()))
        await turn.ack()
    assert await handle.result(LIMIT) == 7


def test_a_value_is_shown_short_and_printable_whatever_it_is():
    for value in STRANGE.values():
        text = shown(value)
        assert len(text) <= SHOWN
        text.encode()
    assert shown("zebra") == "'zebra'"
    assert shown([1, "a"]) == "[1, 'a']"


def test_a_list_has_an_end():
    def endless():
        while True:
            yield "a"

    with pytest.raises(InvalidInput, match=f"more than {MOST_GIVEN}"):
        check_all(endless(), str, "names")


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000, b"a", 5, None, "\ud800", Mute()], ids=range(8))
def test_what_is_no_path_is_refused(path: Any):
    with pytest.raises(InvalidInput, match="path"):
        check_path(path, "path")
    for verb in (Meantime.open, lambda given: Meantime.connect(5 if given is None else given)):  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput):
            verb(path)
