"""Telling a conversation at a hook, once.

Nobody confirms what a hook prints. So its notices stay leased, under their ids, and the next hook of the
conversation looks into its transcript: what is there is acknowledged, what is not is told again. Where a
host shows no transcript, the next hook counts as its word.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from meantime.kernel.errors import LeaseLost, MeantimeError, NotFound, Refused
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.notices import Notice
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.tasks import Tasks
from meantime.surfaces.caller import executable

from . import gemini_transcript, transcript_search
from .hook_events import GEMINI, SESSION_START, STOP
from .quiet_files import QuietFiles
from .shown_notices import Shown, ShownFiles

LEASE = 90.0  # seconds: longer than the grace, and short enough that a vanished host's come back
GRACE = 30.0  # seconds in which a host writes down what it was given; other hooks may keep it waiting
SPOKEN = 3.0  # seconds after which a further hook of a host without a transcript is a later one
SETTLE = 1.0  # seconds: what ends together is told together, and costs a model one question
MOST = 20  # notices at once
RECENT = 4 << 20  # bytes of a transcript's end, in which a notice is looked for that was never leased before
SEARCH = 1.5  # seconds to look through a transcript
SWEEP = 3_600.0  # seconds between two sweeps
MOST_CHARACTERS = 9_000  # Claude Code takes 10,000 of a hook, and puts more into a file
TAIL = 1_500  # of a long one, what is kept of its end
AT_ONCE = 1_000  # tasks that are waited for


class Boundary(NamedTuple):
    """A moment at which a host takes a text for its model."""

    thread: str
    moment: str
    session: str = ""
    transcript: str = ""  # a path; empty where the host gives none
    host: str = ""


class Told(NamedTuple):
    text: str = ""
    turn: str = ""  # that holds what the text tells
    over: bool = False  # nothing runs, and everything was told


class HookDelivery:
    """`acked` is called with a thread whenever something in it was acknowledged here."""

    def __init__(self, tasks: Tasks, home: Path, acked: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._files = ShownFiles(home)
        self.quiet = QuietFiles(home)
        self._acked = acked
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._beside = BackgroundTasks()
        self._readers = ThreadPoolExecutor(4, "meantime-transcripts")
        self._swept = -SWEEP

    async def tell(self, at: Boundary) -> Told:
        """The notices to tell now; they are leased, and count as shown. A caller that is cancelled has not
        shown it: it is given back."""
        telling = self._beside.start(self._tell(at))
        try:
            return await asyncio.shield(telling)
        except asyncio.CancelledError:
            self._beside.start(self._unheard(at, telling))
            raise

    async def give_back(self, at: Boundary, told: Told) -> None:
        """Nobody was shown it."""
        if told.turn:
            async with self._alone(at.thread):
                await self._close(at.thread, told.turn)
                self._files.save(at.thread, Shown())

    async def settle(self, at: Boundary) -> None:
        """Acknowledges what the transcript has by now, and gives back what it will not have any more."""
        async with self._alone(at.thread):
            shown = self._files.load(at.thread)
            if shown.turn:
                kept = await self._settled(at, shown)
                self._files.save(at.thread, kept if kept.turn else Shown())

    async def missing(self, at: Boundary, notices: Sequence[Notice]) -> bool:
        """Whether the conversation lacks one of them, whoever told it."""
        shown = self._files.load(at.thread)
        since = self._offsets(at, shown, notices)
        known = await self._search(at, since)
        return known is None or len(known) < len(since)

    async def gather(self, thread: str) -> None:
        """Waits a moment after an ending for those that come with it, while there is something that can."""
        unread = await self._tasks.notices(thread, ("unread",), limit=1)
        if not unread:
            return
        until = time.monotonic() + SETTLE - max(0.0, self._tasks.now() - unread[0].at)
        while (left := until - time.monotonic()) > 0:
            active = await self._tasks.list(thread, ACTIVE, limit=AT_ONCE)
            if not active:
                return
            await self._tasks.wait([task.id for task in active], thread, until="any", timeout=left)

    async def _tell(self, at: Boundary) -> Told:
        self._sweep()
        if at.host == GEMINI and at.moment == SESSION_START:  # it would forget it: see hook_client.py
            await self.settle(at)
            return Told()
        if at.moment == STOP:
            await self.gather(at.thread)
        async with self._alone(at.thread):
            before = self._files.load(at.thread)
            kept = await self._settled(at, before) if before.turn else Shown()
            turn, fresh = await self._leased(at, kept.turn)
            try:
                fresh = fitting(await self._unknown(at, turn, fresh, before))
            except BaseException:  # nobody will show what this turn holds
                if turn != kept.turn:
                    await self._close(at.thread, turn)
                raise
            waiting = kept.notices if turn == kept.turn else {}
            if fresh:
                size = transcript_search.size(at.transcript) if at.transcript else 0
                notices = {**waiting, **{notice.id: size for notice in fresh}}
                shown = Shown(turn, notices, at.transcript, at.session, self._tasks.now())
                self._files.save(at.thread, shown)
                return Told("\n\n".join(map(text_of, fresh)), turn)
            self._files.save(at.thread, kept if waiting else Shown())
            if not waiting:
                await self._close(at.thread, turn)
                await self.quiet.make(at.thread, lambda: self._tasks.thread(at.thread))
            return Told()

    async def _unknown(
        self, at: Boundary, turn: str, notices: Sequence[Notice], shown: Shown
    ) -> Sequence[Notice]:
        """The notices that the conversation does not have. The others are acknowledged."""
        known = await self._known(at, self._offsets(at, shown, notices), shown)
        if known:
            await self._ack(at.thread, turn, known)
        return [notice for notice in notices if notice.id not in known]

    async def _settled(self, at: Boundary, shown: Shown) -> Shown:
        """Notices that may still be on their way into the transcript keep their turn; otherwise there is no
        turn any more.
        """
        known = await self._known(at, shown.notices, shown)
        held = not known or await self._ack(at.thread, shown.turn, known)
        left = {id: offset for id, offset in shown.notices.items() if id not in known}
        young = shown.age(self._tasks.now()) < GRACE and at.moment != SESSION_START
        fresh = young and not transcript_search.is_database(at.transcript)
        if left and held and fresh:
            return Shown(shown.turn, left, shown.transcript, shown.session, shown.at)
        await self._close(at.thread, shown.turn)
        return Shown()

    async def _leased(self, at: Boundary, turn: str) -> tuple[str, Sequence[Notice]]:
        if turn:
            with suppress(NotFound):  # its lease is over
                return turn, await self._tasks.boundary(turn, limit=MOST, thread=at.thread)
        opened = await self._tasks.open_turn(at.thread, lease=LEASE, limit=MOST)
        return opened.id, opened.notices

    def _offsets(self, at: Boundary, shown: Shown, notices: Iterable[Notice]) -> dict[str, int]:
        """From where each is looked for. One that was leased before by somebody may stand anywhere; one that
        never was may stand there only if our ledger is older than the transcript."""
        size = transcript_search.size(at.transcript) if at.transcript else 0
        found: dict[str, int] = {}
        for notice in notices:
            offset = shown.offset(notice.id, at.transcript)
            anywhere = 0 if notice.delivery > 1 else max(0, size - RECENT)
            found[notice.id] = anywhere if offset is None else offset
        return found

    async def _known(self, at: Boundary, since: Mapping[str, int], shown: Shown) -> set[str]:
        """The notices that the conversation has for certain. Looked for before anything is sent."""
        if not since:
            return set()
        known = await self._search(at, since)
        if known is not None:
            return known
        later = shown.session == at.session and shown.age(self._tasks.now()) >= SPOKEN
        return {id for id in since if later and id in shown.notices}

    async def _search(self, at: Boundary, since: Mapping[str, int]) -> set[str] | None:
        """The notices that the conversation has; None where the host shows no transcript. Beside the loop: a
        disk may be slow, and a transcript long.
        """
        if not at.transcript:
            return None
        look = gemini_transcript.found if at.host == GEMINI else transcript_search.found
        searching = asyncio.get_running_loop().run_in_executor(
            self._readers, look, at.transcript, dict(since), at.session
        )
        try:
            return await asyncio.wait_for(searching, SEARCH)
        except TimeoutError:
            raise Refused(f"{at.transcript[:200]} could not be read in time, so nobody was told.") from None

    async def _ack(self, thread: str, turn: str, ids: set[str]) -> bool:
        """Whether they were held. Otherwise they come again, and are found again."""
        try:
            await self._tasks.ack(turn, sorted(ids), (), thread=thread)
        except (NotFound, LeaseLost):
            return False
        self._acked(thread)
        return True

    async def _close(self, thread: str, turn: str) -> None:
        with suppress(MeantimeError):
            await self._tasks.close_turn(turn, failed=False, thread=thread)

    async def _unheard(self, at: Boundary, telling: asyncio.Task[Told]) -> None:
        await asyncio.wait([telling])
        if not telling.cancelled() and telling.exception() is None:
            await self.give_back(at, telling.result())

    @asynccontextmanager
    async def _alone(self, thread: str) -> AsyncGenerator[None]:
        """One hook of a conversation at a time."""
        lock, users = self._locks.get(thread, (asyncio.Lock(), 0))
        self._locks[thread] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            users = self._locks[thread][1] - 1
            self._locks[thread] = lock, users
            if not users:
                del self._locks[thread]

    def _sweep(self) -> None:
        if time.monotonic() - self._swept >= SWEEP:
            self._swept = time.monotonic()
            self._readers.submit(self._files.sweep)


def text_of(notice: Notice) -> str:
    text = notice.message().text
    if len(text) <= MOST_CHARACTERS:
        return text
    command = shlex.join([*executable.path(), "result", notice.task_id])
    room = MOST_CHARACTERS - len(command) - 100  # for the words of the note, too
    begin, cut = text[: room - TAIL], len(text) - room
    note = f"[{cut} characters are left out here; `{command}` has all of it]"
    return f"{begin}\n{note}\n{text[-TAIL:]}"


def fitting(notices: Sequence[Notice]) -> Sequence[Notice]:
    """As many as a host takes at once, and always the first. The others keep their place."""
    count, size = 0, 0
    for notice in notices:
        size += len(text_of(notice)) + 2
        if count and size > MOST_CHARACTERS:
            break
        count += 1
    return notices[:count]
