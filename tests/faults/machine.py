"""Family 1: a hypothesis state machine with a crash rule, on SQLite with both profiles."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from tests.waiting import LIMIT

from meantime import MeantimeError
from meantime.stores.sqlite.store import SqliteStore

from .clock import FaultClock
from .judge import Tally
from .world import Failure, World

THREADS = st.sampled_from(["a", "b"])
PICK = st.integers(0, 1 << 16)
SHRINK = [Phase.shrink] if os.environ.get("MEANTIME_FAULT_SHRINK") else []  # minutes, for the shortest story


class Life:
    """A world on SQLite that can be cut off: the next one opens a copy of the files of that moment."""

    def __init__(self, durability: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="meantime-faults-"))
        self.durability = durability
        self.cuts = 0
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda loop, context: None)
        self.world = World(self._store, FaultClock(), parks_after=5)
        self.run(self.world.open())

    def _store(self) -> SqliteStore:
        return SqliteStore(self.folder / str(self.cuts) / "ledger.db", self.durability)

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    async def settle(self) -> None:
        """Until nothing is ready, nothing waits for the writer, and no worker thread is at it."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            busy = bool(self.loop._ready)  # type: ignore[attr-defined]
            if self.durability == "full" and not busy:
                await self.world.store._writer.submit(lambda cursor: None)  # behind all that waits
                busy = bool(self.loop._ready)  # type: ignore[attr-defined]
            quiet = 0 if busy else quiet + 1

    def crash(self) -> None:
        old, self.cuts = self.folder / str(self.cuts), self.cuts + 1
        new = self.folder / str(self.cuts)
        new.mkdir()
        for name in os.listdir(old):
            if not name.endswith((".lock", "-shm")):
                shutil.copy(old / name, new / name)
        (new / "ledger.db.lock").write_text('{"clean": false}')
        for id, thread in self.world.active.items():
            self.world.say("finishing", thread, id)
        self.abandon()
        self.run(self.world.open())

    def abandon(self) -> None:
        self.world.clock.forget()
        self.world.runner.cut = True
        writer = self.world.store._writer
        writer._closed = True
        writer._pending.clear()
        if self.durability == "full":
            writer._waiting.put(None)
            writer._thread.join()
        pending = asyncio.all_tasks(self.loop)
        for task in pending:
            task.cancel()
        if pending:
            self.run(asyncio.wait(pending, timeout=LIMIT))
        writer._db.close()
        writer._mark.close()
        self.world.store._reader.close()
        self.world.store._file._lock.drop()

    def end(self) -> None:
        self.abandon()
        self.loop.close()
        shutil.rmtree(self.folder)


class Machine(RuleBasedStateMachine):
    tally: Tally
    life: Life | None = None

    @initialize(durability=st.sampled_from(["fast", "fast", "full"]))
    def begin(self, durability: str) -> None:
        self.life = Life(durability)
        self.world = self.life.world

    def do(self, coroutine: Any) -> None:
        try:
            self.life.run(coroutine)
        except (MeantimeError, Failure) as problem:
            self.note = problem
        self.calm()

    def calm(self) -> None:
        self.life.run(self.life.settle())
        self.life.run(self.world.observe())

    def one(self, ids: Any, pick: int) -> str | None:
        found = sorted(ids)
        return found[pick % len(found)] if found else None

    @rule(
        thread=THREADS,
        timeout=st.sampled_from([None, 5.0, 60.0]),
        retry=st.sampled_from(["", "", "idempotent"]),
        stubborn=st.booleans(),
        on_limit=st.sampled_from(["queue", "queue", "reject"]),
    )
    def start(self, thread: str, **options: Any) -> None:
        self.do(self.world.start(thread, **options))

    @rule(pick=PICK, good=st.booleans())
    def finish(self, pick: int, good: bool) -> None:
        if id := self.one(self.world.active, pick):
            self.world.finish(id, good)
            self.calm()

    @rule(good=st.booleans())
    def finish_all_at_once(self, good: bool) -> None:
        for id in list(self.world.active):
            self.world.finish(id, good)
        self.calm()

    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        if id := self.one(self.world.active, pick):
            self.do(self.world.cancel(id))

    @rule(seconds=st.sampled_from([1.0, 6.0, 11.0, 100.0]), jump=st.sampled_from([0.0, -5e6, 5e6]))
    def pass_time(self, seconds: float, jump: float) -> None:
        for id, thread in self.world.active.items():  # any of them may time out now
            self.world.say("finishing", thread, id)
        self.life.run(self.advance(seconds, jump))
        self.calm()

    async def advance(self, seconds: float, jump: float) -> None:
        self.world.clock.jump(jump)
        await self.world.clock.advance(seconds)

    @rule(thread=THREADS, limit=st.sampled_from([1, 2, 100]), ack=st.sampled_from([None, None, 0, 1, 2]))
    def turn(self, thread: str, limit: int, ack: int | None) -> None:
        self.do(self.world.turn(thread, limit=limit, ack=ack))

    @rule(thread=THREADS)
    def fail_in_turn(self, thread: str) -> None:
        self.do(self.world.turn(thread, fail=True))
        self.life.run(self.world.park_report())

    @rule(pick=PICK, limit=st.sampled_from([1, 100]), ack=st.sampled_from([None, 1]), boundary=st.booleans())
    def read_in_turn(self, pick: int, **options: Any) -> None:
        if id := self.one(self.world.over, pick):
            self.do(self.world.turn(self.world.over[id], read=id, **options))

    @rule(pick=PICK)
    def read_as_a_person(self, pick: int) -> None:
        if id := self.one(self.world.over, pick):
            self.do(self.world.meantime.output(id.rpartition(".")[0]))

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        if id := self.one(self.world.over, pick):
            self.do(self.world.resume(id))

    @rule(thread=THREADS)
    def clear(self, thread: str) -> None:
        self.do(self.world.thread(thread).clear())

    @rule(per_thread=st.sampled_from([1, 2, 5, -1]), total=st.sampled_from([1, 3, -1]))
    def set_limits(self, per_thread: int, total: int) -> None:
        self.do(self.world.meantime.set_limits(per_thread=per_thread, total=total))

    @rule()
    def crash(self) -> None:
        self.tally.faults += 1
        self.life.crash()
        self.calm()

    @rule(
        what=st.sampled_from(["start", "turn", "cancel", "resume", "finish"]),
        ticks=st.integers(0, 8),
        pick=PICK,
        thread=THREADS,
    )
    def crash_in_the_middle(self, what: str, ticks: int, pick: int, thread: str) -> None:
        self.tally.faults += 1
        life, world = self.life, self.world
        id = self.one(world.over if what == "resume" else world.active, pick)

        async def begin() -> None:
            if what == "start" or id is None:
                task = asyncio.ensure_future(world.start(thread))
            elif what == "finish":
                world.finish(id)
                task = None
            else:
                call = {"turn": lambda: world.turn(thread), "cancel": lambda: world.cancel(id),  # pyright: ignore[reportArgumentType]
                        "resume": lambda: world.resume(id)}[what]  # fmt: skip  # pyright: ignore[reportArgumentType]
                task = asyncio.ensure_future(call())
            for _ in range(ticks):
                await asyncio.sleep(0)
            if life.durability == "full":  # files can only be copied whole while nobody writes
                await life.settle()
            if task is not None and task.done():
                task.exception()

        life.run(begin())
        life.crash()
        self.calm()

    def teardown(self) -> None:
        if self.life is None:
            return
        try:
            verdict = self.life.run(self.world.drain(self.life.settle))
            assert verdict.clean, f"{verdict}\n{self.world.ledger}"
        finally:
            self.life.end()


def run(seed: int, examples: int, steps: int, reproduce: str) -> Tally:
    tally = Tally("state machine with crashes", reproduce)

    class Seeded(Machine):
        pass

    Seeded.tally = tally
    checked = settings(
        max_examples=examples, stateful_step_count=steps, database=None, deadline=None,
        suppress_health_check=[*HealthCheck], phases=[Phase.generate, *SHRINK], print_blob=False,  # pyright: ignore[reportArgumentType]
        report_multiple_bugs=False,
    )  # fmt: skip
    try:
        run_state_machine_as_test(seeded(seed)(Seeded), settings=checked)
    except Exception as problem:  # hypothesis has shrunk it: the smallest story that breaks a promise
        notes = "\n".join(getattr(problem, "__notes__", ()))
        tally.broke(f"{type(problem).__name__}: {problem}\n{notes}", f"seed {seed}")
    return tally
