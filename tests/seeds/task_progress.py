"""Seeds 000 and 001 played at random, with resumes, batches and restarts, beside a model that reads events.

The model reads what was submitted, resumed and ended. From that it says what each ending must be told with,
and the status and the name of each task. It shares nothing with the code that it judges.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

from speaking import Speaker

from meantime import Agent, Limits, Meantime, Message, Settings
from meantime.kernel.model import Event, Failed
from meantime.testing import FakeClock, FakeSessionRunner, Reply

THREADS = ("conv-1", "conv-2")
DIALECTS = ("background", "asyncagents")
AT_ONCE = 2  # agents of a conversation that run; others wait for a slot
STEPS = 40
ACTIVE = ("queued", "running", "waiting", "cancelling")
WORDS = {"completed": "completed", "cancelled": "cancelled"}  # every other ending is an error
RUNNING = "WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete."


class Progress(NamedTuple):
    """How things stood when a run ended."""

    ended: int
    total: int
    others: int  # agents of the conversation that were active


class Known:
    """A task, as the journal tells it."""

    def __init__(self, thread: str, batch: str) -> None:
        self.thread = thread
        self.batch = batch
        self.status = ""
        self.run = 0

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def word(self) -> str:
        if self.active:
            return "resumed" if self.run > 1 else "running"
        return WORDS.get(self.status, "error")


class Model:
    def __init__(self) -> None:
        self.seq = 0
        self.tasks: dict[str, Known] = {}
        self.named: dict[str, str] = {}  # the batches that tasks were put into, by task
        self.told: dict[str, Progress] = {}  # by notice

    def read(self, events: Sequence[Event]) -> None:
        for event in events:
            self.seq = event.seq
            if event.kind == "submitted":
                self.tasks[event.task_id] = Known(event.thread, f"batch of {event.task_id}")
            task = self.tasks[event.task_id]
            if event.task_id in self.named:
                task.batch = self.named[event.task_id]
            elif event.kind in ("submitted", "resumed"):
                task.batch = self._open(event.thread) or task.batch
            task.status, task.run = str(event.status), event.run
            if event.kind == "ended":
                self.told[f"{event.task_id}.{event.run}"] = self._progress(task)

    def _open(self, thread: str) -> str | None:
        """The batch that nobody named, in which something is active."""
        active = (task for id, task in self.tasks.items() if task.active and id not in self.named)
        return next((task.batch for task in active if task.thread == thread), None)

    def _progress(self, task: Known) -> Progress:
        thread = [one for one in self.tasks.values() if one.thread == task.thread]
        batch = [one for one in thread if one.batch == task.batch]
        others = sum(one.active for one in thread)
        return Progress(sum(not one.active for one in batch), len(batch), others)

    def of(self, thread: str, *statuses: str) -> list[str]:
        return [id for id, one in self.tasks.items() if one.thread == thread and one.status in statuses]


class Play:
    """One sequence: what is done is chosen by its seed, and everything that is said is compared."""

    def __init__(self, seed: int, ledger: Path) -> None:
        self._ledger = ledger
        self._chance = random.Random(seed)
        self._model = Model()
        self._agents = FakeSessionRunner(_answers)
        self._clock = FakeClock()
        self._launched = 0
        self._called: dict[str, str] = {}  # each task's sessionID, as its launch said it
        self.log = [f"seed {seed}"]

    async def run(self) -> None:
        left = STEPS
        while left:
            async with self._opened() as self._mt:
                await self._read()
                while left:
                    left -= 1
                    if self._chance.random() < 0.07:
                        self.log.append("restart")
                        break
                    await self._step()
                    await self._read()
                    await self._look()
                await self._tell(*(THREADS if not left else ()))

    def _opened(self) -> AbstractAsyncContextManager[Meantime]:
        settings = Settings(limits=Limits(per_thread=AT_ONCE))
        given = {"clock": self._clock, "runners": [self._agents]}
        return Meantime.open(self._ledger, durability="fast", settings=settings, **given)

    async def _read(self) -> None:
        self._model.read(await self._mt._runtime.events(self._model.seq, 1_000))

    async def _step(self) -> None:
        thread = self._chance.choice(THREADS)
        steps = {"launch": 5, "named": 2, "finish": 7, "cancel": 1, "resume": 8, "tell": 2}
        (step,) = self._chance.choices(list(steps), list(steps.values()))
        if step == "tell":
            await self._tell(thread)
        elif step in ("launch", "named"):
            await self._launch(thread, named=step == "named")
        elif found := self._model.of(thread, *_BEFORE[step]):
            await getattr(self, f"_{step}")(thread, self._chance.choice(found))

    def _speaker(self, thread: str) -> Speaker:
        return Speaker(self._mt, self._chance.choice(DIALECTS), thread)

    async def _launch(self, thread: str, *, named: bool) -> None:
        self._launched += 1
        agent = f"{'broken' if self._chance.random() < 0.1 else 'good'}-{self._launched}"
        self._agents.hold(agent)
        if not named:
            said = await self._speaker(thread).call("task", description="d", prompt="p", agent=agent)
            self._called[said.data["task_id"]] = said.data["sessionID"]
        else:
            id, batch = f"named-{self._launched}", self._chance.choice(("one", "two"))
            session = self._chance.choice((None, f"given-{self._launched}"))
            if session is not None:
                self._agents.new_session(session, agent)
            self._model.named[id] = batch
            self._called[id] = session or id
            await self._mt.thread(thread).start(Agent(agent, "p"), id=id, batch=batch, session=session)
        self.log.append(f"launch {agent} in {thread}, named: {named}")

    async def _finish(self, thread: str, id: str) -> None:
        self.log.append(f"finish {id}")
        self._agents.release((await self._mt.get(id)).work.name)
        await self._mt.thread(thread).wait(id)

    async def _cancel(self, thread: str, id: str) -> None:
        self.log.append(f"cancel {id}")
        await self._speaker(thread).call("cancel", task_id=self._name(id))

    async def _resume(self, thread: str, id: str) -> None:
        self.log.append(f"resume {id}")
        self._agents.hold((await self._mt.get(id)).work.name)
        said = await self._speaker(thread).call("task", resume=self._name(id), prompt="more")
        assert (said.code, said.data["status"]) == ("", "resumed"), said
        assert said.data["sessionID"] == self._called[id]

    def _name(self, id: str) -> str:
        """Tools take either."""
        return self._chance.choice((id, self._called[id]))

    async def _look(self) -> None:
        for thread in THREADS:
            listed = (await self._speaker(thread).call("list")).data["tasks"]
            await self._read()
            found = {one["task_id"]: (one["status"], one["sessionID"]) for one in listed}
            wanted = {id: (one.word, self._called[id]) for id, one in self._model.tasks.items()}
            assert found == {id: wanted[id] for id in wanted if self._model.tasks[id].thread == thread}

    async def _tell(self, *threads: str) -> None:
        for thread in threads:
            self.log.append(f"tell {thread}")
            async with self._mt.thread(thread).turn() as turn:
                await self._read()
                for notice in turn.notices:
                    self._compare(notice.id, notice.message("asyncagents"))
                    told = notice.message("background").text
                    assert ("Resume #" in told) == (notice.run > 1), told
                await turn.ack()

    def _compare(self, id: str, told: Message) -> None:
        wanted = self._model.told[id]
        shown, hidden = told.visible, told.parts[1].text
        progress = f"Task Progress: {wanted.ended}/{wanted.total}"
        assert shown.endswith(f"\n{progress}"), f"{id} is told with {shown!r} instead of {progress}"
        all_done = f"All {wanted.total} tasks finished."
        expected, other = (RUNNING, all_done) if wanted.others else (all_done, RUNNING)
        assert expected in hidden, f"{id}: {wanted.others} others were active, and it is told {hidden!r}"
        assert other not in hidden, hidden


_BEFORE = {"resume": ("completed",), "finish": ("running",), "cancel": ("queued", "running")}


def _answers(session: Any) -> Reply:
    return Reply(error=Failed("The disk is full.")) if session.agent.startswith("broken") else Reply("done")


async def play_all(seeds: Iterable[int], folder: Path) -> None:
    """A failure says the seed, and what was done until then."""
    for seed in seeds:
        one = Play(seed, folder / f"{seed}.db")
        try:
            await one.run()
        except AssertionError as problem:
            raise AssertionError("\n".join([*one.log, str(problem)])) from problem
