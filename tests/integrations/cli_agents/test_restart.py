"""P4: kill -9 of the owner in the middle of a turn. The agent goes on; the next owner takes the turn up: its
whole output, each line once, and its true ending, told once."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Completed, Meantime, Status
from meantime.app.pending_open import Opening
from meantime.integrations.cli_agents.session_host import SWEEP, SWEEP_FIRST
from meantime.testing import FakeClock
from outcomes import completed, failed, unfinished

from .conftest import QUICK, Program, ended, lives, one, script, shown, told
from .owning import Owner

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

WHOLE = [
    "assistant call: Bash",
    "tool result: Bash",
    "assistant text: Half of it.",
    "assistant call: Read",
    "tool result: Read",
    "assistant text: All of it.",
]
TURN = script(
    {"call": "Bash"}, {"say": "Half of it."}, {"gate": "gate"}, {"call": "Read"}, {"say": "All of it."}
)


def opened(ledger: Path, program: Program, **more: object) -> Opening:
    return Meantime.open(ledger, settings=QUICK, agents={"one": program.settings(**more)})


@pytest.mark.behaviour("P4")
async def test_a_turn_survives_its_owner(ledger: Path, program: Program):
    owner = Owner(ledger, program.settings())
    id = owner.start(TURN)
    await program.waits()
    owner.kill()
    (pid,) = [given["pid"] for given in program.given]
    assert lives(pid)
    program.open_gate()
    await until_async(lambda: not lives(pid), "the program ends while nobody is there")
    async with opened(ledger, program) as mt:
        thread = mt.thread("a")
        (task,) = await thread.wait(id, timeout=LIMIT)
        assert completed(task).result == "All of it."
        assert shown(await thread.lines(id))[1:] == WHOLE
        # Counted once; what was counted just before the kill may not have been stored yet.
        assert task.progress.tool_calls in ({"Bash": 1, "Read": 1}, {"Read": 1})
        assert 90 <= task.progress.tokens <= 100
        assert await told(thread) == [(id, "completed")]
        assert await told(thread) == []
    assert len(program.given) == 1


@pytest.mark.behaviour("P4")
async def test_a_turn_is_followed_by_one_owner_after_another(ledger: Path, program: Program):
    """And what goes on meanwhile is heard as it comes."""
    owner = Owner(ledger, program.settings())
    id = owner.start(TURN)
    await program.waits()
    owner.kill()
    for _ in range(2):
        async with opened(ledger, program) as mt:  # closed in good order: it is left alone again
            await until_async(lambda: has_lines(mt, id, 4), "what was said before is heard")
    async with opened(ledger, program) as mt:
        program.open_gate()
        thread = mt.thread("a")
        (task,) = await thread.wait(id, timeout=LIMIT)
        assert completed(task).result == "All of it."
        assert shown(await thread.lines(id))[1:] == WHOLE
        assert await told(thread) == [(id, "completed")]
    text = Path(f"{ledger}.agents/@{id}/text.0").read_text()  # what people read
    assert text.count("Half of it.") == 2  # in the prompt, and said once
    assert len(program.given) == 1


async def has_lines(mt: Meantime, id: str, count: int) -> bool:
    return len(await mt.thread("a").lines(id)) >= count


@pytest.mark.behaviour("P4")
async def test_a_session_that_was_taken_up_can_be_gone_on_with(ledger: Path, program: Program):
    owner = Owner(ledger, program.settings())
    id = owner.start(TURN)
    await program.waits()
    owner.kill()
    program.open_gate()
    async with opened(ledger, program) as mt:
        thread = mt.thread("a")
        await thread.wait(id, timeout=LIMIT)
        again = await thread.resume(id, "And now?")
        assert (await ended(again, thread)).outcome.result == "heard 1: And now?"


@pytest.mark.behaviour("P4")
async def test_a_turn_that_was_taken_up_can_be_cancelled(ledger: Path, program: Program):
    owner = Owner(ledger, program.settings())
    id = owner.start(script({"child": 1}, {"gate": "gate"}))
    await program.waits()
    owner.kill()
    async with opened(ledger, program) as mt:
        answer = await mt.thread("a").cancel(id, wait=True)
        assert answer.task.status is Status.CANCELLED
    assert not lives(program.given[0]["pid"])
    assert not lives(program.noted("pids")[0])


async def test_an_agent_that_is_killed_while_nobody_is_there_has_failed(ledger: Path, program: Program):
    owner = Owner(ledger, program.settings())
    id = owner.start(script({"say": "Half of it."}, {"gate": "gate"}, {"signal": 9}))
    await program.waits()
    owner.kill()
    program.open_gate()
    await until_async(lambda: not lives(program.given[0]["pid"]), "the program is gone")
    async with opened(ledger, program) as mt:
        (task,) = await mt.thread("a").wait(id, timeout=LIMIT)
        assert "SIGKILL" in failed(task).message
        assert unfinished(task).partial == "Half of it."
        assert await told(mt.thread("a")) == [(id, "failed")]


async def test_a_try_after_a_busy_provider_is_taken_up_too(ledger: Path, program: Program):
    """What runs is the second try of the same prompt: nothing is begun a third time."""
    busy = {"once": "busy", "error": "429 rate limit, retry after 0.1 s", "status": 429}
    owner = Owner(ledger, program.settings())
    id = owner.start(script(busy, {"say": "At last."}, {"gate": "gate"}, {"say": "Done."}))
    await program.waits()
    owner.kill()
    program.open_gate()
    async with opened(ledger, program) as mt:
        (task,) = await mt.thread("a").wait(id, timeout=LIMIT)
        assert completed(task).result == "Done."
    assert len(program.given) == 2


async def test_a_turn_whose_files_are_gone_is_lost(ledger: Path, program: Program):
    owner = Owner(ledger, program.settings())
    id = owner.start(script({"gate": "gate"}))
    await program.waits()
    owner.kill()
    for file in Path(f"{ledger}.agents/commands-forks").glob("*.*"):
        file.unlink()
    async with opened(ledger, program) as mt:
        (task,) = await mt.thread("a").wait(id, timeout=LIMIT)
        assert task.status is Status.LOST
        assert await told(mt.thread("a")) == [(id, "lost")]
    assert not lives(program.given[0]["pid"])


async def test_a_ledger_that_forgets_leaves_nothing_behind(program: Program):
    async with Meantime.open(":memory:", settings=QUICK, agents={"one": program.settings()}) as mt:
        await mt.thread("a").start(one({"child": 1}, {"gate": "gate"}))
        await program.waits()
    assert not lives(program.given[0]["pid"])
    assert not lives(program.noted("pids")[0])


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_turn_that_nobody_takes_up_is_stopped(ledger: Path, program: Program, forgotten: bool):
    """Its task was ended without it, or is gone for good: then its output goes, too."""
    owner = Owner(ledger, program.settings())
    id = owner.start(script({"child": 1}, {"gate": "gate"}))
    await program.waits()
    owner.kill()
    for path in ledger.parent.glob("work.db*"):
        if path.is_file():
            path.unlink()  # another ledger, with nothing in it
    if forgotten:
        shutil.rmtree(f"{ledger}.agents/@{id}")
    clock = FakeClock()
    agents = {"one": program.settings()}
    async with Meantime.open(ledger, settings=QUICK, agents=agents, clock=clock):
        assert lives(program.given[0]["pid"])
        await clock.advance(SWEEP_FIRST)
        # The tree is killed one process after another, while this test looks on.
        await until_async(lambda: not lives(program.given[0]["pid"]), "the program is gone")
        await until_async(lambda: not lives(program.noted("pids")[0]), "its child is gone")
        if forgotten:
            await until_async(lambda: not is_locked(ledger), "its supervisor is gone")
            await clock.advance(SWEEP)
            states = Path(f"{ledger}.agents/commands-forks")
            await until_async(lambda: not list(states.glob("*.state")), "its output is removed")


def is_locked(ledger: Path) -> bool:
    """Whether a supervisor is still there."""
    mark = f"{ledger}.agents/commands-forks".encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            if mark in path.read_bytes():
                return True
    return False


async def test_the_output_of_a_turn_is_kept_no_longer_than_needed(ledger: Path, program: Program):
    async with opened(ledger, program) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Agent("one", "first"))
        await ended(handle, thread)
        for number in range(3):
            await thread.resume(handle.id, f"again {number}")
            assert isinstance((await ended(handle, thread)).outcome, Completed)
        assert len(list(Path(f"{ledger}.agents/commands-forks").glob("*.state"))) == 1
