"""The notices of every thread: who is owed one, who holds one, what was told."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice

from meantime.kernel.notice_sources import Draft, NoticeBody
from meantime.kernel.notices import NoticeState
from meantime.ports.store import Owed, Settled

from .records import NoticeRecord, TaskRecord, by_number

ALONE_AFTER = 2  # failed deliveries; then a notice is leased alone
OPEN = frozenset({NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED})


class ThreadInbox:
    """One thread's notices, by completion number."""

    __slots__ = ("all", "claimed_at", "held", "last", "open", "turn", "turns", "waits")

    def __init__(self) -> None:
        self.last = 0  # the completion number that was given last; none is given twice
        self.all: dict[int, NoticeRecord] = {}
        # Untold; a told one never comes back, so this stays in order. A plain dict would walk over the
        # holes that a long inbox left at its front.
        self.open: OrderedDict[int, NoticeRecord] = OrderedDict()
        self.held: dict[str, dict[int, NoticeRecord]] = {}  # by turn
        self.claimed_at = float("-inf")
        self.turn, self.turns = "", 0  # the last turn that was told something, and how many there were
        self.waits = False  # some of its notices were parked because nobody came

    def held_by(self, turn: str) -> list[NoticeRecord]:
        return sorted(self.held.get(turn, {}).values(), key=by_number)

    def next_unread(self, turn: str, limit: int) -> list[NoticeRecord]:
        """The notices that the turn may lease now: in order, and one that failed twice by itself."""
        taken: list[NoticeRecord] = []
        if any(holder != turn for holder in self.held):
            return taken
        for notice in self.open.values():
            if len(taken) >= limit:
                break
            if notice.state is not NoticeState.UNREAD:
                continue
            if notice.failures >= ALONE_AFTER:
                return taken or [notice]
            taken.append(notice)
        return taken


class Inboxes:
    def __init__(self) -> None:
        self.all: dict[str, NoticeRecord] = {}  # by id, in commit order
        self.open: OrderedDict[str, NoticeRecord] = OrderedDict()  # the untold ones of them
        self.states: Counter[NoticeState] = Counter()
        self.unread: Counter[str] = Counter()  # by thread; none is not listed
        self._threads: defaultdict[str, ThreadInbox] = defaultdict(ThreadInbox)

    def add(self, record: TaskRecord | None, draft: Draft) -> NoticeRecord:
        """A notice of a task, or one that is about none."""
        thread = self._threads[draft.thread]
        thread.last += 1
        notice = NoticeRecord(record, draft, thread.last)
        if record is not None:
            (record.notices if draft.body is None else record.events).append(notice)
        thread.all[notice.number] = self.all[notice.id] = notice
        self.states[notice.state] += 1
        if notice.state is NoticeState.UNREAD:
            thread.open[notice.number] = self.open[notice.id] = notice
            self.unread[draft.thread] += 1
        return notice

    def joinable(self, body: NoticeBody) -> NoticeRecord | None:
        """The notice with the same source, while nobody has leased it."""
        notice = self.all.get(body.ref.id)
        is_new = notice is not None and notice.state is NoticeState.UNREAD and not notice.deliveries
        return notice if is_new else None

    def drop(self, record: TaskRecord) -> None:
        for notice in (*record.notices, *record.events):
            self.drop_one(notice)

    def prune(self, record: TaskRecord, keep: int) -> None:
        """The told events of a task that are older than its newest `keep`."""
        old = [one for one in record.events[:-keep] if one.state is NoticeState.TOLD]
        for notice in old:
            self.drop_one(notice)
        if old:
            gone = set(old)
            record.events = [one for one in record.events if one not in gone]

    def drop_one(self, notice: NoticeRecord) -> None:
        if notice.state in OPEN:
            self._move(notice, NoticeState.TOLD)
        self.states[notice.state] -= 1
        del self._threads[notice.thread].all[notice.number], self.all[notice.id]

    def _move(self, notice: NoticeRecord, state: NoticeState, turn: str = "") -> None:
        """The one place that moves a notice, so that its indexes cannot disagree."""
        name = notice.thread
        thread = self._threads[name]
        if notice.state is NoticeState.UNREAD:
            self.unread[name] -= 1
            if not self.unread[name]:
                del self.unread[name]
        elif notice.state is NoticeState.LEASED:
            del thread.held[notice.turn][notice.number]
            if not thread.held[notice.turn]:
                del thread.held[notice.turn]
        self.states[notice.state] -= 1
        self.states[state] += 1
        notice.state, notice.turn, notice.waits = state, turn, False
        if state is NoticeState.UNREAD:
            self.unread[name] += 1
        elif state is NoticeState.LEASED:
            if thread.turn != turn:  # one that leases again is still the same
                thread.turn, thread.turns = turn, thread.turns + 1
            notice.turn_number = thread.turns
            notice.deliveries += 1
            thread.held.setdefault(turn, {})[notice.number] = notice
        elif state is NoticeState.TOLD:
            del thread.open[notice.number], self.open[notice.id]

    # -- a turn
    def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[NoticeRecord]:
        home = self._threads[thread]
        home.claimed_at = now
        if home.waits:
            home.waits = False
            for notice in home.open.values():
                if notice.waits:
                    self._move(notice, NoticeState.UNREAD)
        leased = home.next_unread(turn, limit)
        for notice in leased:
            self._move(notice, NoticeState.LEASED, turn)
        return leased

    def read(self, turn: str, id: str) -> bool:
        notice = self.all.get(id)
        if notice is None or notice.state is not NoticeState.UNREAD:
            return False
        self._move(notice, NoticeState.LEASED, turn)
        return True

    def settle(self, thread: str, turn: str, ids: Sequence[str], now: float) -> Settled:
        held = {notice.id: notice for notice in self._threads[thread].held_by(turn)}
        told: list[str] = []
        gone: list[str] = []
        for id in dict.fromkeys(ids or held):
            if id in held:
                self._move(held[id], NoticeState.TOLD, turn)
                held[id].told_at = now
            (told if self._was_told_by(turn, id, thread) else gone).append(id)
        return Settled(tuple(told), tuple(gone))

    def told_by(self, turn: str, ids: Sequence[str], thread: str | None) -> Sequence[str]:
        return [id for id in dict.fromkeys(ids) if self._was_told_by(turn, id, thread)]

    def _was_told_by(self, turn: str, id: str, thread: str | None) -> bool:
        notice = self.all.get(id)
        if notice is None or thread not in (None, notice.thread):
            return False
        return notice.state is NoticeState.TOLD and notice.turn == turn

    def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        held = self._threads[thread].held_by(turn)
        for notice in held:
            self._give_back(notice, failed=failed, parks_after=parks_after)
        return [notice.id for notice in held if notice.state is NoticeState.UNREAD]

    def _give_back(self, notice: NoticeRecord, *, failed: bool, parks_after: int) -> None:
        notice.failures += failed
        parks = failed and notice.failures >= parks_after
        self._move(notice, NoticeState.PARKED if parks else NoticeState.UNREAD)

    # -- everybody
    def threads(self) -> Iterator[str]:
        return (name for name, home in self._threads.items() if home.all)

    def untold(self, thread: str) -> Iterable[NoticeRecord]:
        home = self._threads.get(thread)
        return home.open.values() if home else ()

    def select(self, thread: str | None, states: frozenset[NoticeState]) -> Iterator[NoticeRecord]:
        """In the order of their endings."""
        home = self if thread is None else self._threads.get(thread) or ThreadInbox()
        notices = home.open if states <= OPEN else home.all
        return (notice for notice in notices.values() if notice.state in states)

    def page(self, thread: str, before: int, limit: int) -> Sequence[NoticeRecord]:
        """Newest first. Numbers only grow, so the newest are the last."""
        home = self._threads.get(thread) or ThreadInbox()
        older = (notice for notice in reversed(home.all.values()) if notice.number < before)
        return list(islice(older, limit))

    def count(self, thread: str, most: int) -> dict[str, int]:
        home = self._threads.get(thread) or ThreadInbox()
        settled = (notice.state.value for notice in reversed(home.all.values()) if notice.state not in OPEN)
        unsettled = (notice.state.value for notice in home.open.values())
        return dict(Counter(islice(settled, most)) + Counter(unsettled))

    def owed(self, thread: str) -> Owed:
        home = self._threads.get(thread) or ThreadInbox()
        states = Counter(notice.state.value for notice in home.open.values())
        newest = home.all[max(home.all)].at if home.all else None
        return Owed(thread, states["unread"], states["leased"], states["parked"], newest)

    def held(self, thread: str, most: int) -> tuple[int, int]:
        """Its leased and its parked notices."""
        states = Counter(notice.state for notice in self.untold(thread))
        return min(states[NoticeState.LEASED], most), min(states[NoticeState.PARKED], most)

    def late(self, before: float, most: int) -> tuple[int, int, int]:
        found = [notice.delivery for notice in islice(self.open.values(), most)]
        late = [one for one in found if one.state == NoticeState.PARKED or (one.at or 0.0) < before]
        return len(late), len(found), self.states[NoticeState.TOLD]

    def unpark(self, thread: str, ids: Sequence[str] | None = None) -> int:
        """Somebody looked at it: its failures are forgiven, so that one more does not park it again."""
        parked = [notice for notice in self.untold(thread) if notice.state is NoticeState.PARKED]
        if ids is not None:
            parked = [notice for notice in parked if notice.id in set(ids)]
        for notice in parked:
            notice.failures = 0
            self._move(notice, NoticeState.UNREAD)
        return len(parked)

    def park_unclaimed(self, before: float, spare: Set[str]) -> int:
        """An ending younger than `before` is left alone: nobody had the time yet to claim it."""
        parked = 0
        for home in [self._threads[name] for name in self.unread if name not in spare]:
            if home.claimed_at >= before:
                continue
            for notice in home.open.values():
                if notice.state is NoticeState.UNREAD and notice.at < before:
                    self._move(notice, NoticeState.PARKED)
                    notice.waits = home.waits = True
                    parked += 1
        return parked

    def recover(self, parks_after: int) -> int:
        leased = [notice for notice in self.open.values() if notice.state is NoticeState.LEASED]
        for notice in leased:
            self._give_back(notice, failed=True, parks_after=parks_after)
        return len(leased)
