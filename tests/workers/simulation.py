"""An owner, workers and a carrier that loses, doubles, delays and reorders, in simulated time.

The states of both sides are the real ones; around them are a ledger and journals that survive crashes, and an
outside count of what was really begun. Everything follows from the seed.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Claim, Run, Task, Work, fence_of
from meantime.kernel.payloads import Jsonable
from meantime.kernel.pool_slots import Need
from meantime.link.frames import WireReport, WorkState
from meantime.workers import effects as do
from meantime.workers import messages as say
from meantime.workers.owner_state import OwnerState
from meantime.workers.worker_state import JournalEntry, WorkerSideState

LEASE, GRACE = 6.0, 6.0
POOL = "default"
TICK = 0.25


class Row:
    """A task in the ledger."""

    def __init__(self, id: str, kind: str, idempotent: bool) -> None:
        self.id = id
        self.kind = kind
        self.idempotent = idempotent
        self.attempt = 1
        self.status = "queued"
        self.claim: Claim | None = None
        self.outcome = ""
        self.told = 0

    @property
    def fence(self) -> tuple[int, int]:
        return (1, self.attempt)

    @property
    def need(self) -> Need:
        return Need(f"pool:{POOL}", self.kind)


class World:
    def __init__(
        self,
        seed: int,
        *,
        tasks: int = 60,
        workers: int = 3,
        loss: float = 0.2,
        double: float = 0.2,
        late: float = 0.3,
        owner_state: type[OwnerState] = OwnerState,
        worker_state: type[WorkerSideState] = WorkerSideState,
        forgets_journal: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.loss, self.double, self.late = loss, double, late
        self.owner_state, self.worker_state = owner_state, worker_state
        self.forgets_journal = forgets_journal
        self.queue: list[bytes] = []  # offers that wait, or were pulled and not acknowledged
        self.begun: Counter[tuple[str, tuple[int, int]]] = Counter()
        self.executions: Counter[str] = Counter()
        self.wrong: list[str] = []
        kinds = [("call", True), ("call", False), ("shell", False)]
        self.ledger = {f"t{n}": Row(f"t{n}", *kinds[n % len(kinds)]) for n in range(tasks)}
        self.owner = Owner(self)
        self.workers = {f"w{n}": Worker(self, f"w{n}") for n in range(workers)}

    # -- time

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), action))

    def run(self, most: float) -> None:
        while self._events and self.now < most and not self.is_over:
            self.now, _, action = heapq.heappop(self._events)
            action()

    @property
    def is_over(self) -> bool:
        return all(row.status == "ended" for row in self.ledger.values())

    # -- the carrier

    def send(self, deliver: Callable[[], None]) -> None:
        if self.random.random() < self.loss:
            return
        for _ in range(2 if self.random.random() < self.double else 1):
            delay = self.random.uniform(0, 3) if self.random.random() < self.late else 0.01
            self.after(delay, deliver)

    def publish(self, offer: bytes, *, again: bool) -> None:
        if again and offer in self.queue:
            self.wrong.append("an offer was repeated while it was in the queue")
        if self.random.random() >= self.loss:
            self.queue += [offer] * (2 if self.random.random() < self.double else 1)

    def withdraw(self, task: str) -> None:
        """It may be pulled nevertheless."""
        if self.random.random() >= self.loss:
            self.queue = [offer for offer in self.queue if f'"{task}"'.encode() not in offer]

    # -- faults

    def kill_owner(self) -> None:
        self.owner.kill()
        self.after(self.random.uniform(0.1, 2), self.owner.start)

    def kill_worker(self, name: str, gone: float) -> None:
        self.workers[name].kill()
        self.after(gone, self.workers[name].start)

    def forget_queue(self) -> None:
        self.queue.clear()


class Owner:
    def __init__(self, world: World) -> None:
        self.world = world
        self.life = 0
        self.start()

    def start(self) -> None:
        self.life += 1
        self.is_up = True
        self.state = self.world.owner_state(LEASE, GRACE)
        self.published: set[str] = set()
        self.waiting = {row.id for row in self.world.ledger.values() if row.status == "queued"}
        for row in self.world.ledger.values():
            if row.status == "running":
                assert row.claim is not None
                self.do(self.state.follow(row.id, row.fence, row.claim))
        self._tick(self.life)

    def kill(self) -> None:
        self.life += 1
        self.is_up = False

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        life = self.life
        self.world.after(seconds, lambda: action() if self.life == life else None)

    def _tick(self, life: int) -> None:
        if self.life != life:
            return
        self.do(self.state.tick(TICK))
        self._offer()
        if self.world.queue:
            self.state.not_empty(POOL)
        else:
            self.do(self.state.empty(POOL, TICK))
        self.later(TICK, lambda: self._tick(life))

    def _offer(self) -> None:
        """What somebody can perform; offers that nobody is left to claim wait again."""
        for task in self.state.unserved():
            self.state.withdraw(task)
            self.waiting.add(task)
            self.published.discard(f"{task}.{self.world.ledger[task].attempt}")
            self.world.withdraw(task)
        for row in [self.world.ledger[task] for task in sorted(self.waiting)]:
            if self.state.slots_for(row.need):
                self.waiting.discard(row.id)
                self.do(self.state.offer(row.id, row.fence, row.need))

    def receive(self, worker: str, data: bytes) -> None:
        if not self.is_up:
            return
        said = say.from_worker(data)
        match said:
            case say.ClaimMessage():
                self.do(self.state.claim(worker, said))
            case say.AliveMessage():
                self.do(self.state.alive(worker, said))
            case say.SayingMessage():
                self.state.saying(worker, said.nonce)
            case say.EndedMessage():
                self.do(self.state.ended(worker, said))
            case say.UnknownMessage():
                self.do(self.state.unknown(worker, said))
            case _:
                raise AssertionError(said)

    def do(self, effects: list[do.OwnerEffect]) -> None:
        for effect in effects:
            self._do(effect)

    def _do(self, effect: do.OwnerEffect) -> None:
        world = self.world
        match effect:
            case do.Publish(task, pool):
                row = world.ledger[task]
                offer = say.OfferMessage(task=task, fence=row.fence, pool=pool, work=row.kind)
                key = f"{task}.{row.attempt}"
                world.publish(say.encode(offer), again=key in self.published)
                self.published.add(key)
            case do.Tell(worker, message):
                self.tell(worker, message)
            case do.SendGrant(task, claim):
                self.tell(
                    claim.worker, say.GrantedMessage(nonce=claim.nonce, task=as_task(world.ledger[task]))
                )
            case do.Commit(task, fence, claim):
                self.later(self.world.random.uniform(0, 0.1), lambda: self._commit(task, fence, claim))
            case do.Conclude(task, worker, ended):
                self.later(self.world.random.uniform(0, 0.1), lambda: self._conclude(task, worker, ended))
            case do.Settle(worker, ended):
                row = world.ledger[ended.task]
                if row.status == "ended" or row.fence != ended.fence:
                    self.tell(worker, say.HeardMessage(nonce=ended.nonce))
            case do.Lose(task, _):
                self._lose(task)
            case do.Unbegun(task):
                self._again(world.ledger[task])

    def _commit(self, task: str, fence: tuple[int, int], claim: Claim) -> None:
        row = self.world.ledger[task]
        done = row.status == "queued" and row.fence == fence
        if done:
            row.status, row.claim = "running", claim
        self.do(self.state.committed(task, claim, done=done))

    def _conclude(self, task: str, worker: str, ended: say.EndedMessage) -> None:
        row = self.world.ledger[task]
        if row.status == "running" and row.fence == ended.fence:
            if ended.report.lost:
                self.state.let_go(task)
                self._lose(task)
            else:
                self._end(row, "completed")
        self.do(self.state.recorded(task, worker, ended.nonce))

    def _lose(self, task: str) -> None:
        row = self.world.ledger[task]
        if row.idempotent:
            self._again(row)
        else:
            self._end(row, "lost")

    def _end(self, row: Row, outcome: str) -> None:
        row.status, row.outcome = "ended", outcome
        row.told += 1

    def _again(self, row: Row) -> None:
        row.attempt, row.status, row.claim = row.attempt + 1, "queued", None
        self.waiting.add(row.id)

    def tell(self, worker: str, message: say.FromOwner) -> None:
        data = say.encode(message)
        self.world.send(lambda: self.world.workers[worker].receive(data))


class Worker:
    slots = 8

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.journal: dict[str, bytes] = {}  # survives
        self.commands: dict[str, float] = {}  # survive: when each ends
        self.nonces = count()
        self.kinds = (
            ("call", "shell") if name == "w0" else ("call",)
        )  # while it is gone, nobody runs commands
        self.life = 0
        self.start()

    def start(self) -> None:
        self.life += 1
        if self.world.forgets_journal:
            self.journal = {}
        journal = {
            nonce: msgspec.json.decode(data, type=JournalEntry) for nonce, data in self.journal.items()
        }
        self.state = self.world.worker_state(f"home-{self.name}", "boot", journal, "key")
        self.is_up = True
        self.do(self.state.recover())
        self._tick(self.life)

    def kill(self) -> None:
        self.life += 1
        self.is_up = False

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        life = self.life
        self.world.after(seconds, lambda: action() if self.life == life else None)

    def _tick(self, life: int) -> None:
        if self.life != life:
            return
        self.do(self.state.tick(TICK))
        runs = tuple(self.state.journal)
        home = self.state.home
        self.say(
            say.AliveMessage(
                home=home, boot="boot", pool=POOL, slots=self.slots, runs=runs, kinds=self.kinds, key="key"
            )
        )
        for _ in range(len(self.world.queue)):
            if self.state.taken >= self.slots:
                break
            data = self.world.queue.pop(self.world.random.randrange(len(self.world.queue)))
            offer = say.from_owner(data)
            assert isinstance(offer, say.OfferMessage)
            if offer.work in self.kinds:
                self.do(self.state.offered(offer, f"{self.name}-{next(self.nonces)}"))
            else:
                self.world.queue.append(data)  # another worker can perform it
        self.later(TICK, lambda: self._tick(life))

    def receive(self, data: bytes) -> None:
        if not self.is_up:
            return
        said = say.from_owner(data)
        match said:
            case say.GrantedMessage():
                self.do(self.state.granted(said))
            case say.DeniedMessage(nonce=nonce):
                self.do(self.state.denied(nonce))
            case say.HeardMessage(nonce=nonce):
                self.do(self.state.heard(nonce))
            case say.HaveMessage(nonce=nonce):
                self.do(self.state.have(nonce))
            case _:
                raise AssertionError(said)

    def do(self, effects: list[do.WorkerEffect]) -> None:
        for effect in effects:
            self._do(effect)

    def _do(self, effect: do.WorkerEffect) -> None:
        match effect:
            case do.Say(message):
                self.say(message)
            case do.Keep(nonce):
                self.journal[nonce] = msgspec.json.encode(self.state.journal[nonce])
            case do.Drop(granted):
                self.journal.pop(granted.nonce, None)
                self.commands.pop(granted.nonce, None)
            case do.Begin(granted):
                self._begin(granted)
            case do.TakeUp(granted):
                left = max(0.0, self.commands.get(granted.nonce, 0.0) - self.world.now)
                self.later(left, lambda: self._finish(granted))
            case do.Describe(nonce):
                state = WorkState(None, {}, None)
                self.say(say.SayingMessage(nonce=nonce, number=1, said=state, age=0.0))
            case do.Taken():
                pass

    def _begin(self, granted: say.GrantedMessage) -> None:
        task = granted.task
        self.world.begun[task.id, fence_of(task.run)] += 1
        self.world.executions[task.id] += 1
        takes = self.world.random.uniform(0, 4)
        if task.work.kind == "shell":
            self.commands[granted.nonce] = self.world.now + takes
        self.later(takes, lambda: self._finish(granted))

    def _finish(self, granted: say.GrantedMessage) -> None:
        ended = say.EndedMessage(
            nonce=granted.nonce,
            task=granted.task.id,
            fence=fence_of(granted.task.run),
            report=WireReport(Jsonable("done", True)),
            said=WorkState(None, {}, None),
            age=1.0,
        )
        self.do(self.state.finished(granted.nonce, ended))

    def say(self, message: say.FromWorker) -> None:
        data = say.encode(message)
        name = self.name
        self.world.send(lambda: self.world.owner.receive(name, data))


def as_task(row: Row) -> Task:
    run = Run(attempt=row.attempt, claim=row.claim)
    return Task(id=row.id, thread="a", work=Work(row.kind, "f"), status=Status.RUNNING, run=run)


def played(seed: int, *, kills: int = 20, owner_kills: int = 3, **given: Any) -> World:
    """A whole run: faults in its first half, then quiet, until every task has ended."""
    world = World(seed, **given)
    chance = world.random
    for _ in range(kills):
        name = chance.choice(list(world.workers))
        gone = chance.uniform(0.1, 3) if chance.random() < 0.9 else LEASE + GRACE + 5
        world.after(chance.uniform(0, 30), lambda name=name, gone=gone: world.kill_worker(name, gone))
    for _ in range(owner_kills):
        world.after(chance.uniform(0, 30), world.kill_owner)
    for _ in range(3):
        world.after(chance.uniform(0, 30), world.forget_queue)
    world.run(600.0)
    return world


def faults_of(world: World) -> list[str]:
    """What is wrong with a finished world; nothing, if the protocol holds."""
    wrong = list(dict.fromkeys(world.wrong))
    for row in world.ledger.values():
        if row.status != "ended":
            wrong.append(f"{row.id} never ended: it is {row.status}")
        if row.told > 1:
            wrong.append(f"{row.id} was told {row.told} times")
        if row.idempotent and row.outcome != "completed":
            wrong.append(f"{row.id} is idempotent and was {row.outcome or row.status}")
        if not row.idempotent and world.executions[row.id] > 1:
            wrong.append(f"{row.id} is not idempotent and was begun {world.executions[row.id]} times")
        if row.outcome == "completed" and not world.executions[row.id]:
            wrong.append(f"{row.id} completed without having been begun")
    wrong += [
        f"{task} was begun {n} times as run {fence}" for (task, fence), n in world.begun.items() if n > 1
    ]
    return wrong
