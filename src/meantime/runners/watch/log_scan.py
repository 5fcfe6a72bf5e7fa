"""The output of one task, read once for all watches that look at it.

Watches that have searched up to the same offset form a pass: its bytes are read, cut into lines and searched
together. A pass that reaches another joins it. So a log costs the same for one watch and for many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from meantime.kernel.errors import NotFound, Refused
from meantime.kernel.event_notices import Events
from meantime.kernel.line_blocks import LineBlocks
from meantime.kernel.model import Json
from meantime.kernel.watches import MOST_CONTEXT, counted, until_words
from meantime.ports.clock import Clock
from meantime.ports.watch_ledger import WatchLedger

from .expressions import ExpressionSet, MatchedLine, expression
from .findings import Findings

PIECE = 1 << 18  # bytes that are read at once
BEFORE = 1 << 13  # bytes before the cursor that are read again, for the lines before a match
SAVED = 1 << 16  # bytes that were searched without a match, after which the cursor is kept,
SAVES = 100  # by so many watches a second
HEAVY = 4_000  # characters of expressions from which on they are searched for beside the event loop
EXCERPT = 800  # characters of a line that is told
AWAY = ("worker_away", "worker_unreachable")  # codes: the output is there, and cannot be read for now
RETRY = 1.0  # seconds, while it cannot be read
ENDED = "until its task ended"
DEADLINE = "until the deadline"
DELETED = "until its task was deleted"


class LogWatch:
    """One watch of a log."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.over: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self.at = findings.cursor.at  # what was searched, which may not be kept yet
        self.is_due = False
        self._until = expression(findings.spec.until, "until") if findings.spec.until else None
        self._match = expression(findings.spec.match) if findings.spec.match else None
        self._stops_at: int | None = None
        if findings.cursor.last is not None:  # an owner before us found it, and could not write the ending
            self._end_until(findings.cursor.last)

    @property
    def texts(self) -> tuple[str, ...]:
        spec = self.findings.spec
        return tuple(filter(None, (spec.match, spec.until)))

    def end(self, why: str, last: str = "") -> None:
        """`last`: what it found last, which its ending tells."""
        if not self.over.done():
            self.over.set_result((why, last))

    def _end_until(self, last: str) -> None:
        self.end(until_words(self.findings.spec), last)

    async def save(self) -> None:
        """How far it has searched. Once it is over its cursor stays where it is: whoever comes after a crash
        finds the ending again from there."""
        if not self.over.done():
            await self.findings.save(at=self.at)

    async def lost(self, begin: int, end: int) -> None:
        cursor = counted(self.findings.cursor, 0, at=end)
        cursor = counted(cursor, 0, unsearched=cursor.unsearched + end - begin)
        text = (
            f"{end - begin:,} bytes of the output (from {begin:,} to {end:,}) were overwritten before they "
            "could be searched."
        )
        await self.findings.tell(Events(text, text), cursor)
        self.at = end

    async def search(self, block: bytes, history: list[bytes], searched: int, state: Json = None) -> None:
        """Tells of the lines that fit. A line that ends the watch is told by its ending."""
        spec = self.findings.spec
        found = self._match.lines(block) if self._match is not None else []
        last = self._until.lines(block)[:1] if self._until is not None else []
        if last:
            found = [place for place in found if place.begin < last[0].begin]
        ending = _excerpt(block, last[0], history, spec.context) if last else None
        if spec.once and found:
            self.findings.cursor = counted(self.findings.cursor, 1)
            self.end("", _excerpt(block, found[0], history, spec.context))
            return
        if found:
            first, newest = (_excerpt(block, place, history, spec.context) for place in (found[0], found[-1]))
            cursor = counted(self.findings.cursor, len(found), at=searched, state=state, last=ending)
            await self.findings.tell(Events(first, newest, len(found)), cursor)
        if ending is not None:
            self._end_until(ending)
            return
        self.at = searched

    def reached(self, searched: int, read: int, total: int) -> None:
        """A watch whose time is over still searches what was there by then."""
        if self.over.done():
            return
        self.at = searched
        if self.is_due and self._stops_at is None:
            self._stops_at = total
        if self._stops_at is not None and read >= self._stops_at:
            self.end(DEADLINE)


class _Pass:
    """Watches that have searched up to the same place."""

    def __init__(self, at: int) -> None:
        self.lines = LineBlocks(at)
        self.history: list[bytes] = []  # the last lines before the next block
        self.has_history = False  # whether those before the first block were read
        self.watches: list[LogWatch] = []
        self._expressions: ExpressionSet | None = None
        self._owners: list[list[LogWatch]] = []  # of each expression
        self.is_heavy = False
        self.saved = at
        self.saved_at = 0.0

    def add(self, watches: Iterable[LogWatch]) -> None:
        self.watches += watches
        self._expressions = None

    def drop_ended(self) -> None:
        left = [watch for watch in self.watches if not watch.over.done()]
        if len(left) < len(self.watches):
            self.watches, self._expressions = left, None

    def hits(self, block: bytes) -> list[LogWatch]:
        """The watches whose expressions fit something in the block."""
        if self._expressions is None:
            owners: dict[str, list[LogWatch]] = {}
            for watch in self.watches:
                for text in watch.texts:
                    owners.setdefault(text, []).append(watch)
            self._expressions = ExpressionSet(list(owners))
            self._owners = list(owners.values())
            self.is_heavy = sum(map(len, owners)) > HEAVY
        found = {id(one): one for place in self._expressions.hits(block) for one in self._owners[place]}
        return list(found.values())

    def remember(self, block: bytes) -> None:
        most = max((watch.findings.spec.context for watch in self.watches), default=0)
        if most:
            end = block.rstrip(b"\n")[-most * EXCERPT * 4 :]
            self.history = [*self.history, *(line for line in end.split(b"\n") if line)][-most:]


class LogScan:
    """All watches of one log. `gone` is called when the last one has left."""

    def __init__(
        self, ledger: WatchLedger, clock: Clock, id: str, stream: str, gone: Callable[[], object]
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._id = id
        self._stream = stream
        self._gone = gone
        self._passes: list[_Pass] = []
        self._joining: list[LogWatch] = []
        self._poked = asyncio.Event()
        self._scanning = asyncio.get_running_loop().create_task(self._scan())

    def add(self, watch: LogWatch) -> None:
        self._joining.append(watch)
        self.poke()

    def poke(self) -> None:
        """A watch came, left, or its time is over."""
        self._poked.set()

    def close(self) -> None:
        self._scanning.cancel()

    @property
    def _watches(self) -> list[LogWatch]:
        return [*self._joining, *(watch for one in self._passes for watch in one.watches)]

    async def _scan(self) -> None:
        try:
            while await self._step_or_pause():
                pass
        except NotFound:
            for watch in self._watches:
                watch.end(DELETED)
        except asyncio.CancelledError:
            raise
        except Exception as problem:  # each watch fails with it, none waits for ever
            for watch in self._watches:
                if not watch.over.done():
                    watch.over.set_exception(problem)
        finally:
            self._gone()

    async def _step_or_pause(self) -> bool:
        """A worker that is silent may come back. A deadline does not wait for it."""
        try:
            return await self._step()
        except Refused as problem:
            if problem.code not in AWAY:
                raise
        for watch in self._watches:
            if watch.is_due:
                watch.end(f"{DEADLINE}, while its worker was away")
        alarm = self._clock.call_later(RETRY, self._poked.set)
        try:
            await self._poked.wait()
        finally:
            alarm.cancel()
        return True

    async def _step(self) -> bool:
        """Reads and searches one piece, or waits for more. False: nobody is left."""
        self._poked.clear()
        self._join()
        for one in self._passes:
            one.drop_ended()
        self._passes = [one for one in self._passes if one.watches]
        for one in self._passes:
            await self._recall(one)
        if not self._passes:
            return bool(self._joining)
        self._passes.sort(key=lambda one: one.lines.at)
        lowest = self._passes[0]
        ahead = [one.lines.at for one in self._passes if one.lines.at > lowest.lines.at]
        most = min(PIECE, ahead[0] - lowest.lines.at) if ahead else PIECE
        chunk = await self._ledger.read(self._id, self._stream, lowest.lines.at, most)
        if chunk.lost_bytes:
            await self._lost(lowest, chunk.offset)
        block = lowest.lines.feed(chunk.data, last=chunk.ended)
        await self._search(lowest, block, lowest.lines.searched)
        for one in self._passes:  # another may have read as far, and wait for the end of another line
            if one is lowest or (one.lines.at == lowest.lines.at and not chunk.ended):
                for watch in one.watches:
                    watch.reached(one.lines.searched, one.lines.at, chunk.total)
        if chunk.ended:
            for watch in lowest.watches:
                watch.end(ENDED)
        await self._save(lowest)
        self._merge()
        if chunk.data or chunk.lost_bytes or chunk.ended:
            await asyncio.sleep(0)  # a log that never pauses must not keep everybody else from running
        elif any(not watch.over.done() for watch in lowest.watches):
            await self._wait(max(lowest.lines.at, chunk.total))
        return True

    def _join(self) -> None:
        """Without a wait: a watch is always in one of the lists, so whatever fails ends it, too."""
        joining, self._joining = self._joining, []
        for at in sorted({watch.at for watch in joining}):
            one = _Pass(at)
            one.add(watch for watch in joining if watch.at == at)
            one.saved_at = self._clock.monotonic()
            self._passes.append(one)

    async def _recall(self, one: _Pass) -> None:
        """The lines before the first block, if somebody wants to be told them."""
        at, most = one.lines.at, max(watch.findings.spec.context for watch in one.watches)
        if at and most and not one.has_history:
            before = await self._ledger.read(self._id, self._stream, max(0, at - BEFORE), min(at, BEFORE))
            if not before.lost_bytes:
                one.remember(LineBlocks(0).feed(before.data))
        one.has_history = True

    async def _lost(self, one: _Pass, begin: int) -> None:
        """The line before the gap is searched as it is, since its end is gone."""
        end = one.lines.at
        await self._search(one, one.lines.skip(begin), end)
        await asyncio.gather(*(watch.lost(end, begin) for watch in one.watches if not watch.over.done()))

    async def _search(self, one: _Pass, block: bytes, searched: int) -> None:
        if block:
            found = await asyncio.to_thread(one.hits, block) if one.is_heavy else one.hits(block)
            open_ = [watch.search(block, one.history, searched) for watch in found if not watch.over.done()]
            await asyncio.gather(*open_)
            one.remember(block)

    async def _save(self, one: _Pass) -> None:
        """So that a later owner does not take for lost what was searched, and dropped since."""
        now = self._clock.monotonic()
        due = now - one.saved_at >= max(1.0, len(one.watches) / SAVES)
        if due and one.lines.searched - one.saved >= SAVED:
            one.saved, one.saved_at = one.lines.searched, now
            await asyncio.gather(*(watch.save() for watch in one.watches))

    async def _wait(self, seen: int) -> None:
        """Until there is more than what was seen, or somebody pokes."""
        more = asyncio.ensure_future(self._ledger.wait_output(self._id, self._stream, seen))
        poked = asyncio.ensure_future(self._poked.wait())
        try:
            await asyncio.wait({more, poked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            poked.cancel()
            if not more.done():
                more.cancel()
        if more.done() and not more.cancelled():
            more.result()

    def _merge(self) -> None:
        met: dict[tuple[int, int], _Pass] = {}
        for one in self._passes:
            first = met.setdefault((one.lines.at, one.lines.searched), one)
            if first is not one:
                first.add(one.watches)
                one.watches = []


def _excerpt(block: bytes, place: MatchedLine, history: list[bytes], context: int) -> str:
    """The line that fits, with the lines around it that are there by now."""
    line = block[place.begin : place.end]
    if len(line) > EXCERPT:
        begin = max(0, place.found - place.begin - EXCERPT // 4)
        line = b"\xe2\x80\xa6" * (begin > 0) + line[begin : begin + EXCERPT] + b"\xe2\x80\xa6"
    if not context:
        return line.decode("utf-8", "replace")
    context = min(context, MOST_CONTEXT)
    before = [one for one in block[: place.begin].split(b"\n")[-4 * context :] if one]
    before = [*history, *before][-context:]
    after = [one for one in block[place.end : place.end + context * EXCERPT * 4].split(b"\n") if one][
        :context
    ]
    lines = [*(b"  " + one[:EXCERPT] for one in before), b"> " + line]
    lines += [b"  " + one[:EXCERPT] for one in after]
    return b"\n".join(lines).decode("utf-8", "replace")
