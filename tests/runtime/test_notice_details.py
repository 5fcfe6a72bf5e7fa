"""N16 to N22 of the matrix: what a notice carries, and what counts as told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import until_async

from jobs import Deaf, finished, messages, start, take_turn
from meantime import (
    Call,
    Cancelled,
    Completed,
    InlineLimits,
    InvalidInput,
    Meantime,
    Settings,
    Status,
    Thread,
)
from meantime.testing import FakeClock, FakeHost

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize("result", ["plain text\nof two lines", {"rows": [1, None]}, 3.5, ["é"]])
async def test_a_notice_has_the_form_of_the_synchronous_answer(thread: Thread, result: object) -> None:
    """Text as it is, everything else as JSON, inside the labelled block."""
    await finished(thread, result)
    await take_turn(thread)
    (message,) = await messages(thread)
    shown = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    before, _, rest = message.text.partition(">\n" + shown + "\n</")
    assert rest, message.text
    assert "\nUntrusted output:\n<" in before
    assert (await thread.call(Call(lambda: result))).result == result


@pytest.mark.behaviour("N17", "R10")
async def test_over_the_limits_the_whole_lies_in_a_file(thread: Thread) -> None:
    """The message has the reference and a beginning and an end; output and result know the way."""
    payload = "\n".join(f"line {number}" for number in range(5_000))
    handle = await finished(thread, payload)
    await take_turn(thread)
    (message,) = await messages(thread)
    output = await handle.output()
    assert output.spill is not None
    assert Path(output.spill.path).read_text() == payload
    assert Path(output.spill.path).stat().st_mode & 0o077 == 0
    assert output.spill.path in message.text
    for part in ("line 0\n", "line 4999", f"{len(payload)} bytes, 5000 lines"):
        assert part in message.text
    assert "line 2500" not in message.text
    assert output.text.startswith("line 0\n")
    assert await handle.result() == payload


@pytest.mark.behaviour("N17")
async def test_a_spilled_object_comes_back_as_it_was(thread: Thread) -> None:
    rows = [{"n": number, "text": "x" * 100} for number in range(1_000)]
    handle = await finished(thread, rows)
    assert (await handle.output()).spill is not None
    assert await handle.result() == rows


@pytest.mark.behaviour("N18")
@pytest.mark.embedded
async def test_a_tool_may_have_inline_limits_of_its_own(ledger: str, clock: FakeClock) -> None:
    """By the name of the work, and closer still with the start itself."""
    settings = Settings(inline_by_name={"builtins:repr": InlineLimits(10, 10)})
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread = mt.thread("a")

        async def spills(work: Call, inline: InlineLimits | None = None) -> bool:
            handle = await thread.start(work, inline=inline)
            await handle.wait()
            return (await handle.output()).spill is not None

        assert await spills(Call(repr, "x" * 20))
        assert not await spills(Call(str, "x" * 20))
        assert not await spills(Call(repr, "x" * 20), InlineLimits(100, 10))
        assert await spills(Call(str, "x" * 20), InlineLimits(19, 10))


@pytest.mark.behaviour("N19")
async def test_a_turns_read_settles_with_its_ack(thread: Thread) -> None:
    """The agent has seen it in this turn: once the turn is acknowledged, it is not told again."""
    (first, one), (second, two), (_, three) = [await start(thread) for _ in range(3)]
    async with thread.turn() as turn:
        first.finish()
        await one.wait()
        await turn.output(one)
        second.finish()
        await turn.wait(two)
        await turn.cancel(three)
        assert "not yet told" in await thread.reminder()
        await turn.ack()
    assert await take_turn(thread) == []


@pytest.mark.behaviour("N19")
async def test_a_read_without_the_ack_settles_nothing(thread: Thread) -> None:
    job, handle = await start(thread)
    async with thread.turn() as turn:
        job.finish()
        await turn.wait(handle)
        await turn.output(handle)
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N19")
async def test_reads_outside_a_turn_settle_nothing(mt: Meantime, thread: Thread) -> None:
    """A thread's own read, a handle's and a person's: none counts as told."""
    handle = await finished(thread)
    async with thread.turn() as turn:
        pass  # given back
    await thread.output(handle)
    await thread.wait(handle)
    await handle.result()
    await mt.output(handle.id)
    await mt.get(handle.id)
    assert [notice.state for notice in await mt.notices()] == ["unread"]
    assert turn.notices[0].task_id == handle.id
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N19")
async def test_a_dialect_may_say_that_reads_never_settle(thread: Thread) -> None:
    job, handle = await start(thread)
    async with thread.turn(reads_settle=False) as turn:
        job.finish()
        await turn.wait(handle)
        await turn.ack()
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N19")
async def test_a_read_of_a_running_task_settles_nothing(thread: Thread) -> None:
    job, handle = await start(thread)
    async with thread.turn() as turn:
        assert (await turn.output(handle)).partial
        await turn.ack()
    job.finish()
    await handle.wait()
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N20")
@pytest.mark.embedded
async def test_a_suppressed_ending_is_recorded_and_not_told(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """notify=False: the ending is recorded and can be read, nobody is woken or told."""
    host = FakeHost()
    mt.attach("conv-1", host)
    handle = await finished(thread, "quiet", notify=False)
    await clock.advance(60)
    assert host.attempts == []
    assert await take_turn(thread) == []
    assert await thread.reminder() == ""
    assert [notice.state for notice in await mt.notices("muted")] == ["muted"]
    assert await handle.result() == "quiet"
    loud = await finished(thread)
    await clock.until(lambda: host.tasks("conv-1") == [loud.id])


@pytest.mark.behaviour("N21")
@pytest.mark.embedded
@pytest.mark.parametrize("grade", ["A", "B", "C"])
async def test_a_host_says_what_it_can(mt: Meantime, thread: Thread, grade: str) -> None:
    """Grade, wake and push are stated by the host, and kept with it."""
    host = FakeHost(grade, can_wake=grade != "C")
    mt.attach("conv-1", host)
    delivery = mt._runtime.pushing.hosts["conv-1"].delivery
    assert (delivery.grade, delivery.can_wake, delivery.can_push) == (grade, grade != "C", True)
    mt.detach("conv-1")
    assert mt._runtime.pushing.hosts == {}


@pytest.mark.behaviour("N21")
@pytest.mark.embedded
async def test_a_detached_host_is_told_nothing_more(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    first, second = FakeHost(), FakeHost()
    mt.attach("conv-1", first)
    mt.attach("conv-1", second)
    handle = await finished(thread)
    await clock.until(lambda: second.tasks("conv-1") == [handle.id])
    mt.detach("conv-1")
    await finished(thread)
    await clock.advance(60)
    assert first.attempts == []
    assert len(second.attempts) == 1


@pytest.mark.behaviour("N22")
@pytest.mark.embedded
async def test_late_output_is_never_shown_as_success(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """A run that was left behind and returns all the same: kept, and neither told nor shown."""
    deaf = Deaf()
    handle = await thread.start(deaf.call)
    await deaf.started.wait()
    await handle.cancel()
    await clock.advance(10)
    await handle.wait()
    assert await take_turn(thread) == [handle.id]
    deaf.finish("precious")

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "precious"

    await until_async(is_kept, "the late result is kept")
    task = await handle.get()
    assert (task.status, task.outcome) == (Status.CANCELLED, Cancelled("agent", abandoned=True))
    assert not isinstance(task.outcome, Completed)
    assert (await handle.output()).value is None
    assert await take_turn(thread) == []
    assert "precious" not in "".join(message.text for message in await messages(thread))
    assert len(await mt.notices("told")) == 1


async def test_notices_come_in_pages_with_their_total(mt: Meantime, thread: Thread) -> None:
    for _ in range(5):
        await finished(thread)
    await finished(mt.thread("other"))
    first = await mt.notices(thread="conv-1", limit=2)
    last = await mt.notices(thread="conv-1", limit=2, offset=4)
    assert ([notice.number for notice in first], first.total) == ([1, 2], 5)
    assert ([notice.number for notice in last], last.total) == ([5], 5)
    assert (await mt.notices(thread="conv-1", offset=9)).total == 5
    assert (await mt.notices(limit=1)).total == 6
    assert (await mt.notices("told", limit=1)).total == 0
    bad: dict[str, Any]
    for bad in ({"limit": 0}, {"limit": 1_001}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            await mt.notices(**bad)
