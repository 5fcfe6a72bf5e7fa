"""Slips that people make at first: each is refused with what to write instead, or simply works."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from meantime import (
    Call,
    Completed,
    InvalidInput,
    Meantime,
    Shell,
    Thread,
    background,
    blocking,
    current,
)
from meantime.kernel.questions import Reply

pytestmark = pytest.mark.anyio


def slow(seconds: float) -> float:
    return seconds


async def test_a_function_is_handed_over_in_a_call(thread: Thread) -> None:
    start: Any = thread.start
    with pytest.raises(InvalidInput, match=r"slow is a function, not work\. Write start\(Call\(slow, 1\)\)"):
        await start(slow, 1)
    with pytest.raises(InvalidInput, match=r"Write start\(Call\(slow\)\)"):
        await start(slow)


async def test_a_missing_argument_is_said_before_anything_is_recorded(mt: Meantime, thread: Thread) -> None:
    call: Any = Call
    with pytest.raises(InvalidInput, match=r"slow\(seconds.*missing a required argument: 'seconds'"):
        await thread.start(call(slow))
    with pytest.raises(InvalidInput, match="unexpected keyword argument 'secs'"):
        await thread.start(call(slow, 1, secs=1))
    assert await mt.list() == []


@pytest.mark.parametrize("kind", [Meantime, blocking.Meantime])
def test_a_ledger_is_not_opened_by_calling_its_class(kind: type) -> None:
    with pytest.raises(InvalidInput, match=r"Use Meantime\.open\(path\)"):
        kind()


def test_a_ledger_is_opened_asynchronously() -> None:
    opening: Any = Meantime.open(":memory:")
    with pytest.raises(InvalidInput, match=r"async with.*meantime\.blocking"), opening:
        pass


def test_settings_are_settings() -> None:
    given: Any = {"max_wait": 60}
    with pytest.raises(InvalidInput, match=r"not dict\. Write settings=Settings\(max_wait=60\)"):
        Meantime.open(":memory:", settings=given)


@pytest.mark.parametrize(("said", "seconds"), [("5s", 5.0), ("1h30m", 5_400.0), ("1m 30s", 90.0)])
async def test_a_timeout_may_be_a_text(thread: Thread, said: str, seconds: float) -> None:
    handle = await thread.start(Call(slow, 1), timeout=said)
    assert (await handle.get()).run.timeout == seconds


@pytest.mark.parametrize("said", ["soon", "", "60", "5 apples", "5s!", "1h-30m"])
async def test_a_timeout_that_is_no_duration_is_refused(thread: Thread, said: str) -> None:
    with pytest.raises(InvalidInput, match=r'Give seconds, or a text such as "90s"'):
        await thread.start(Call(slow, 1), timeout=said)


@pytest.mark.parametrize("line", ["a && b", "ls -l", "cat x|wc"])
def test_a_line_for_the_shell_is_not_a_list(line: str) -> None:
    with pytest.raises(InvalidInput, match=r"A line for the shell is a text: Shell\('"):
        Shell([line])


def test_a_program_whose_name_has_a_blank_can_be_run(tmp_path: Path) -> None:
    program = tmp_path / "my program"
    program.touch()
    assert Shell([str(program)]).command == [str(program)]


class Found(BaseModel):
    path: Path
    lines: int


async def test_a_pydantic_model_and_a_path_are_results_like_any_other(thread: Thread) -> None:
    def look() -> Found:
        return Found(path=Path("a.txt"), lines=3)

    def where() -> Path:
        return Path("a.txt")

    model, path = await thread.start(Call(look)), await thread.start(Call(where))
    await thread.wait(model, path)
    assert (await model.get()).outcome == Completed({"path": "a.txt", "lines": 3})
    assert (await path.get()).outcome == Completed("a.txt")


async def test_progress_takes_a_text_beside_the_percentage(thread: Thread) -> None:
    def work() -> None:
        current().progress(30, "half of the files")

    handle = await thread.start(Call(work))
    progress = (await handle.wait()).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (30.0, "half of the files")


@background
def count(number: int) -> int:
    current().progress(50)
    current().emit("seen", number)
    return number


@background
async def count_later(number: int) -> int:
    current().check()
    return count(number)


class Counter:
    @background
    def add(self, number: int) -> int:
        return number


async def test_a_background_function_can_be_called_directly(thread: Thread) -> None:
    assert count(3) == 3
    assert await count_later(4) == 4
    assert Counter().add(5) == 5
    assert await (await thread.start(count.work(6))).result() == 6


def test_an_answer_reads_as_text() -> None:
    assert str(Reply(question="q", text="the second one")) == "the second one"
    assert f"{Reply(question='q', choices=('yes',))}" == "yes"


async def test_a_decorator_that_gives_an_argument_itself_is_not_mistaken(thread: Thread) -> None:
    @wraps(slow)
    def decorated() -> float:
        return slow(2.0)

    handle = await thread.start(Call(decorated))
    assert await handle.result() == 2.0
