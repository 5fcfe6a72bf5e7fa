"""The worker's part of the protocol, as pure decisions: what it claimed, began, and has still to report.

It has no clock and sends nothing; time comes in by `tick`. The journal is the truth: a run is begun after its
claim was written there, and its claim is dropped after the owner has recorded its ending. So a journal that
does not have a claim proves that the run was never begun, or that its ending is on record.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.model import fence_of
from meantime.link.frames import WireReport, WorkState

from .effects import Begin, Describe, Drop, Keep, Say, Taken, TakeUp, WorkerEffect
from .messages import ClaimMessage, EndedMessage, GrantedMessage, OfferMessage, UnknownMessage

CLAIM_AGAIN = (1.0, 2.0, 4.0, 8.0)  # seconds between two sends of the same claim
CLAIM_PATIENCE = 30.0  # seconds after which a claim that nobody answers is given up
ENDED_AGAIN = (1.0, 2.0, 5.0, 10.0)  # seconds between two sends of the same ending
SYNC_AT = 2  # sends of an ending that nobody acknowledged, after which a power cut must not take it
RESTARTED = "The worker that ran it was restarted; how far it got is not known."
LASTING = ("shell",)  # kinds of work that go on when the worker is gone


class JournalEntry(Struct, frozen=True, omit_defaults=True):
    """A claim that was granted: begun, and perhaps ended. The values of variables and stdin are not kept."""

    granted: GrantedMessage
    ended: EndedMessage | None = None


class PendingClaim:
    __slots__ = ("age", "claim", "said", "times")

    def __init__(self, claim: ClaimMessage) -> None:
        self.claim = claim
        self.age = 0.0  # seconds
        self.said = 0.0  # seconds since it was last sent
        self.times = 0  # that it was sent again


class UnheardEnding:
    __slots__ = ("said", "times")

    def __init__(self) -> None:
        self.said = 0.0
        self.times = 0


class WorkerSideState:
    def __init__(
        self, home: str, boot: str, journal: dict[str, JournalEntry] | None = None, key: str = ""
    ) -> None:
        self.home = home
        self.boot = boot
        self.key = key
        self.journal: dict[str, JournalEntry] = {} if journal is None else journal
        self.pending: dict[str, PendingClaim] = {}
        self._unheard = {nonce: UnheardEnding() for nonce, one in self.journal.items() if one.ended}

    @property
    def running(self) -> int:
        return sum(1 for entry in self.journal.values() if entry.ended is None)

    @property
    def taken(self) -> int:
        """Slots in use: by what runs, and by claims that may be granted at any moment."""
        return self.running + len(self.pending)

    def recover(self) -> list[WorkerEffect]:
        """At the start of another life: commands are followed, functions are lost, endings are repeated."""
        effects: list[WorkerEffect] = []
        for nonce, entry in list(self.journal.items()):
            if entry.ended is not None:
                effects.append(Say(entry.ended))
            elif entry.granted.task.work.kind in LASTING:
                effects.append(TakeUp(entry.granted))
            else:
                effects += self.finished(nonce, lost_ending(entry.granted))
        return effects

    # -- what the owner says

    def offered(self, offer: OfferMessage, nonce: str) -> list[WorkerEffect]:
        """An offer that this worker can perform."""
        claim = ClaimMessage(
            task=offer.task,
            fence=offer.fence,
            nonce=nonce,
            home=self.home,
            boot=self.boot,
            key=self.key,
            opens_input=True,
        )
        self.pending[nonce] = PendingClaim(claim)
        return [Say(claim), Taken(offer)]

    def granted(self, said: GrantedMessage) -> list[WorkerEffect]:
        """Begins a run once: only for a claim of this life that waits, and after it was written down."""
        if said.nonce in self.journal:
            return []
        if self.pending.pop(said.nonce, None) is None:
            return [Say(UnknownMessage(nonce=said.nonce, home=self.home, boot=self.boot))]
        self.journal[said.nonce] = JournalEntry(without_secrets(said))
        return [Keep(said.nonce), Begin(said)]

    def denied(self, nonce: str) -> list[WorkerEffect]:
        self.pending.pop(nonce, None)
        return []

    def have(self, nonce: str) -> list[WorkerEffect]:
        entry = self.journal.get(nonce)
        if entry is not None:
            return [Describe(nonce) if entry.ended is None else Say(entry.ended)]
        waiting = self.pending.get(nonce)
        if waiting is not None:
            return [Say(waiting.claim)]  # which asks for the grant that was lost, or is on its way
        return [Say(UnknownMessage(nonce=nonce, home=self.home, boot=self.boot))]

    def heard(self, nonce: str) -> list[WorkerEffect]:
        entry = self.journal.get(nonce)
        if entry is None or entry.ended is None:
            return []
        del self.journal[nonce]
        self._unheard.pop(nonce, None)
        return [Drop(entry.granted)]

    # -- what happens here

    def finished(self, nonce: str, ended: EndedMessage) -> list[WorkerEffect]:
        entry = self.journal.get(nonce)
        if entry is None or entry.ended is not None:
            return []
        self.journal[nonce] = JournalEntry(entry.granted, ended)
        self._unheard[nonce] = UnheardEnding()
        return [Say(ended), Keep(nonce)]  # somebody waits for the one, and nobody for the other

    def tick(self, seconds: float) -> list[WorkerEffect]:
        effects: list[WorkerEffect] = []
        for nonce, waiting in list(self.pending.items()):
            waiting.age += seconds
            waiting.said += seconds
            if waiting.age > CLAIM_PATIENCE:
                del self.pending[nonce]
            elif waiting.said >= CLAIM_AGAIN[min(waiting.times, len(CLAIM_AGAIN) - 1)]:
                waiting.said, waiting.times = 0.0, waiting.times + 1
                effects.append(Say(waiting.claim))
        for nonce, unheard in self._unheard.items():
            unheard.said += seconds
            if unheard.said >= ENDED_AGAIN[min(unheard.times, len(ENDED_AGAIN) - 1)]:
                if unheard.times == SYNC_AT:
                    effects.append(Keep(nonce, synced=True))
                unheard.said, unheard.times = 0.0, unheard.times + 1
                ended = self.journal[nonce].ended
                assert ended is not None
                effects.append(Say(ended))
        return effects


def without_secrets(granted: GrantedMessage) -> GrantedMessage:
    """For the journal. A function is not begun again, so its arguments are not kept either; a command whose
    variables or stdin are not kept cannot be."""
    task = granted.task
    if task.work.kind in LASTING:
        given = {name: value for name, value in dict(task.work.input or {}).items() if name != "stdin"}
        whole = not granted.env and granted.stdin is None and given == task.work.input
        work = replace(task.work, input=given, faithful=task.work.faithful and whole)
    else:
        work = replace(task.work, input=None)
    return GrantedMessage(nonce=granted.nonce, task=replace(task, work=work), events=granted.events)


def lost_ending(granted: GrantedMessage, reason: str = RESTARTED) -> EndedMessage:
    task = granted.task
    return EndedMessage(
        nonce=granted.nonce,
        task=task.id,
        fence=fence_of(task.run),
        report=WireReport(lost=reason),
        said=WorkState(None, {}, None),
        age=0.0,
    )
