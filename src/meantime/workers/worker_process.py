"""A worker: claims offers of its pool, performs them, and repeats each ending until it is acknowledged.

`worker_state.py` decides; this carries out its effects. A claim is in the journal before its run begins. An
ending is sent first, and written a moment later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.pool_slots import POOL
from meantime.link import wire_errors
from meantime.ports.carrier import MOST_PULLED, CarrierState, Offered, WorkerCarrier
from meantime.ports.clock import Alarm, Clock
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import LastingRunner, Leftovers
from meantime.system.event_spool import EventSpool

from . import messages as say
from .capabilities import advertised, has_function
from .effects import Begin, Describe, Drop, Keep, Say, Taken, TakeUp, WorkerEffect
from .grant_seal import WorkerSealKey
from .journal import ClaimJournal
from .message_batch import MessageBatch
from .output_looks import OutputLooks
from .owner_frames import OwnerFrames
from .owner_key import Verifier
from .worker_run import PerformedRun
from .worker_state import WorkerSideState

logger = logging.getLogger("meantime")
TICK = 0.5  # seconds
PULL_WAIT = 5.0  # seconds that one pull waits for an offer
RELEASED_WAIT = 1.0  # seconds after offers that it cannot perform
FULL_WAIT = 0.2  # seconds between two looks for a free slot
LIST_EVERY, LIST_TIMES = 10, 2  # of so many messages so many list the functions: they seldom change
ENDED_KEPT = 0.002  # seconds after an ending was sent in which it is written down
REST = 30.0  # seconds without claims after the journal could not be written

Request = say.ReadMessage | say.WatchMessage | say.SendMessage | say.EndLeftoversMessage


class WorkerSettings(Struct, frozen=True, kw_only=True):
    pool: str = "default"
    slots: int = 32
    labels: dict[str, str] = {}
    kinds: tuple[str, ...] = ("call", "shell")
    functions: tuple[str, ...] = ()  # names of the functions that it performs
    version: str = ""
    boot: str = ""


class Worker:
    def __init__(
        self,
        carrier: WorkerCarrier,
        engine: Engine,
        journal: ClaimJournal,
        verifier: Verifier,
        clock: Clock,
        settings: WorkerSettings,
    ) -> None:
        self._carrier = carrier
        self._engine = engine
        self._journal = journal
        self._frames = OwnerFrames(verifier)
        self._clock = clock
        self._settings = settings
        self._seal_key = WorkerSealKey()
        self._labels = settings.labels | say.SEALED
        self.state = WorkerSideState("", settings.boot)
        self.runs: dict[str, PerformedRun] = {}
        self._batch = MessageBatch(lambda _, part: carrier.to_owner(part))
        self._unkept: set[str] = set()  # claims whose ending is not in the journal yet
        self._beside = BackgroundTasks()
        self._pulling: asyncio.Task[None] | None = None
        self._alarm: Alarm | None = None
        self._ticked = 0.0
        self._taken: dict[tuple[str, tuple[int, int]], Offered] = {}
        self.is_draining = False
        self._closed = False
        self._idle = asyncio.Event()
        self._resting = 0.0  # until this moment nothing is claimed
        self._advertised = advertised(settings.functions)
        self._ticks = 0
        self._looks = OutputLooks()
        self._answering: set[str] = set()  # requests of the owner

    # -- life

    async def open(self) -> None:
        """Takes up what an earlier life has left, then asks for more. Raises LedgerBusy."""
        found = self._journal.open()
        self.state = WorkerSideState(self._journal.home, self._settings.boot, found, self._seal_key.public)
        await self._engine.open()
        await self._carrier.open(self._receive, self._state_changed)
        self._do(self.state.recover())
        self._ticked = self._clock.monotonic()
        self._tick()
        self._pulling = asyncio.get_running_loop().create_task(self._pull())

    async def drain(self, seconds: float) -> None:
        """Claims nothing more, and waits until nothing runs and every ending was acknowledged."""
        self.is_draining = True
        self._idle.clear()
        alarm = self._clock.call_later(seconds, self._idle.set)
        try:
            await self._idle.wait()
        finally:
            alarm.cancel()

    async def close(self) -> None:
        """Commands keep running, and the next life follows them; functions end with us and are lost."""
        self._keep_endings()
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._pulling is not None:
            self._pulling.cancel()
            await asyncio.gather(self._pulling, return_exceptions=True)
        await self._looks.close()
        for run in list(self.runs.values()):
            await run.leave()
        await self._beside.close()
        self._batch.flush()
        await self._carrier.close()
        await self._engine.close()
        self._journal.close()

    def _state_changed(self, state: CarrierState) -> None:
        if state.up:
            logger.info("The carrier is connected.")
        elif not self._closed:
            logger.warning("The carrier is down: %s", state.reason)

    # -- offers

    async def _pull(self) -> None:
        while True:
            free = self._settings.slots - self.state.taken
            if free <= 0 or self._claims_nothing:
                await asyncio.sleep(FULL_WAIT)
                continue
            try:
                found = await self._carrier.pull(self._settings.pool, min(free, MOST_PULLED), PULL_WAIT)
            except MeantimeError as problem:
                logger.warning("No offers could be pulled: %s", problem)
                await asyncio.sleep(PULL_WAIT)
                continue
            if self._claims_nothing:  # since this pull began to wait
                for offered in found:
                    self._carrier.release(offered)
                continue
            claimed = [self._offered(offered) for offered in found]
            if found and not any(claimed):  # they come back at once: others must have time to take them
                await asyncio.sleep(RELEASED_WAIT)

    @property
    def _claims_nothing(self) -> bool:
        return self.is_draining or self._clock.monotonic() < self._resting

    def _offered(self, offered: Offered) -> bool:
        """Whether it was claimed. One that the owner did not sign is removed; one that this worker does not
        know, or cannot perform, is left to another."""
        offer = self._frames.read_offer(offered.data)
        if offer is None and not self._frames.is_signed(offered.data):
            logger.warning("An offer was removed: the owner did not sign it.")
            self._carrier.acknowledge(offered)
        elif offer is None or not self._can(offer):
            self._carrier.release(offered)
        else:
            self._taken[offer.task, offer.fence] = offered
            self._do(self.state.offered(offer, os.urandom(12).hex()))
            return True
        return False

    def _can(self, offer: say.OfferMessage) -> bool:
        settings = self._settings
        if offer.work not in settings.kinds or offer.pool != settings.pool:
            return False
        if any(self._labels.get(label) != value for label, value in offer.needs.items()):
            return False
        return offer.work != "call" or (
            bool(settings.functions) and has_function(settings.functions, offer.name)
        )

    # -- from the owner

    def _receive(self, frame: bytes) -> None:
        for said in self._frames.read(frame):
            self._take(said)

    def _take(self, said: say.FromOwner) -> None:
        match said:
            case say.GrantedMessage():
                self._granted(said)
            case say.DeniedMessage():
                self._do(self.state.denied(said.nonce))
            case say.HeardMessage():
                self._do(self.state.heard(said.nonce))
            case say.HaveMessage():
                self._do(self.state.have(said.nonce))
            case say.CancelMessage():
                if run := self.runs.get(said.nonce):
                    run.stop(said.times)
            case say.RepliedMessage():
                opened = self._seal_key.opened_input(said, self._carrier.worker)
                run = self.runs.get(said.nonce)
                if run is not None and isinstance(opened, say.RepliedMessage):
                    run.replied(opened)
            case say.NotedMessage():
                if run := self.runs.get(said.nonce):
                    run.events.noted(said)
            case say.ReadMessage() | say.WatchMessage() | say.SendMessage() | say.EndLeftoversMessage():
                if said.ask not in self._answering:  # the owner repeats what was not answered yet
                    self._answering.add(said.ask)
                    self._beside.start(self._answer(said))
            case say.OfferMessage():
                pass  # offers come from the queue

    def _granted(self, said: say.GrantedMessage) -> None:
        """The granted work is checked as the offered work was: work that is not allowed here is not begun."""
        opened = self._seal_key.opened(said, self._carrier.worker)
        if opened is None:
            logger.warning("A grant was not sealed for this worker and its claim; the claim is repeated.")
            return
        said = opened
        task = said.task if said.task.place else replace(said.task, place=POOL + self._settings.pool)
        if not self._can(say.offer_of(task)):
            self.state.denied(said.nonce)
        self._do(self.state.granted(said))

    async def _answer(self, asked: Request) -> None:
        try:
            answer = await self._answer_to(asked)
        finally:
            self._answering.discard(asked.ask)
        if answer is not None:
            self._say(answer)

    async def _answer_to(self, asked: Request) -> say.AnswerMessage | None:
        if isinstance(asked, say.EndLeftoversMessage):
            return await self._end_leftovers(asked)
        if isinstance(asked, say.SendMessage):
            opened = self._seal_key.opened_input(asked, self._carrier.worker)
            if not isinstance(opened, say.SendMessage):
                return None  # it was sealed for an earlier life, and is repeated for this one
            asked = opened
        entry = self.state.journal.get(asked.nonce)
        if entry is not None:
            run = self.runs.get(asked.nonce) or self._performed(entry.granted, again=True)
            return await run.answer(asked)
        if asked.nonce in self.state.pending:
            return None  # its grant is on its way
        gone = NotFound(f"Worker {self._carrier.worker} has nothing of this run, or not any more.")
        return say.AnswerMessage(ask=asked.ask, error=wire_errors.to_wire(gone))

    async def _end_leftovers(self, asked: say.EndLeftoversMessage) -> say.AnswerMessage:
        """By the same rule as at the owner: a second cancel ends what an ended command has left running."""
        runner = self._engine.runner(asked.task.work.kind)
        found = Leftovers()
        if runner.abilities.adopt:
            found = await cast("LastingRunner", runner).end_leftovers(asked.task)
        return say.AnswerMessage(ask=asked.ask, killed=found.killed, left=found.left)

    # -- effects

    def _do(self, effects: list[WorkerEffect]) -> None:
        for effect in effects:
            if not self._carry_out(effect):
                return

    def _carry_out(self, effect: WorkerEffect) -> bool:
        """False: what follows must not happen."""
        match effect:
            case Say(message):
                self._say(message)
            case Keep(nonce, synced):
                if self.state.journal[nonce].ended is None or synced:
                    return self._keep(nonce, synced=synced)
                self._unkept.add(nonce)
                self._clock.call_later(ENDED_KEPT, self._keep_endings)
            case Drop(granted):
                self._performed(granted, again=True).forget()
                self.runs.pop(granted.nonce, None)
                self._journal.drop(granted.nonce)
            case Begin(granted):
                self._performed(granted, again=False).begin(self._ended)
            case TakeUp(granted):
                self._performed(granted, again=True).begin(self._ended)
            case Describe(nonce):
                if run := self.runs.get(nonce):
                    self._say(run.saying())
            case Taken(offer):
                if offered := self._taken.pop((offer.task, offer.fence), None):
                    self._carrier.acknowledge(offered)
        return True

    def _keep(self, nonce: str, *, synced: bool) -> bool:
        """A run that cannot be written down is not begun, and is another worker's. An ending that cannot be
        is sent all the same; only a crash before it is acknowledged would lose it."""
        entry = self.state.journal[nonce]
        try:
            if entry.ended is None:
                self._performed(entry.granted, again=False).prepare()
                del self.runs[nonce]  # the one that begins has the values of its variables, too
            self._journal.keep(entry, synced=synced)
        except (OSError, MeantimeError) as problem:
            if entry.ended is None:
                self._give_back(nonce, problem)
                return False
            logger.error("The journal could not be written: %s", problem)
        return True

    def _keep_endings(self) -> None:
        """Once they are on their way, which somebody waits for. A worker that is killed in between has lost a
        function as if it had been killed a moment before; how a command ended is in its own files."""
        unkept, self._unkept = self._unkept, set()
        for nonce in unkept & self.state.journal.keys():
            self._keep(nonce, synced=False)

    def _give_back(self, nonce: str, problem: Exception) -> None:
        """A run that was granted cannot be begun, because the disk is full: it is another worker's."""
        logger.error("A run could not be begun, and no more is claimed for %g s: %s", REST, problem)
        entry = self.state.journal.pop(nonce)
        self._performed(entry.granted, again=True).forget()
        del self.runs[nonce]
        self._resting = self._clock.monotonic() + REST
        self._say(say.UnknownMessage(nonce=nonce, home=self.state.home, boot=self.state.boot))

    def _performed(self, granted: say.GrantedMessage, *, again: bool) -> PerformedRun:
        run = self.runs.get(granted.nonce)
        if run is None:
            spool = EventSpool(self._journal.events(granted.nonce))
            run = PerformedRun(granted, self._engine, self._clock, self._say, spool, again=again)
            self.runs[granted.nonce] = run
        return run

    def _ended(self, ended: say.EndedMessage) -> None:
        if not self._closed:
            self._do(self.state.finished(ended.nonce, ended))
            if run := self.runs.get(ended.nonce):
                run.events.close()

    def _say(self, message: say.FromWorker) -> None:
        self._batch.add("", say.encode(message))

    # -- time

    def _tick(self) -> None:
        now = self._clock.monotonic()
        passed, self._ticked = now - self._ticked, now
        self._do(self.state.tick(passed))
        for run in self.runs.values():
            run.tick()
        self._looks.look(run for run in self.runs.values() if run.speaks)
        if not self.state.journal and not self.state.pending:
            self._idle.set()
        settings = self._settings
        self._say(
            say.AliveMessage(
                home=self.state.home,
                boot=self.state.boot,
                pool=settings.pool,
                slots=settings.slots,
                running=self.state.running,
                runs=tuple(self.state.journal),
                tasks=tuple("" if one.ended else one.granted.task.id for one in self.state.journal.values()),
                host=socket.gethostname(),
                version=settings.version,
                labels=settings.labels,
                kinds=settings.kinds,
                functions=self._advertised if self._ticks % LIST_EVERY < LIST_TIMES else (),
                draining=self.is_draining,
                sent=self._clock.now(),
                key=self._seal_key.public,
                opens_input=True,
            )
        )
        self._ticks += 1
        if not self._closed:
            self._alarm = self._clock.call_later(TICK, self._tick)
