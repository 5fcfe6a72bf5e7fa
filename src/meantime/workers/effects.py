"""Effects: the next steps of a side of the protocol. The states decide and return them; others carry them
out, in their order."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from meantime.kernel.model import Claim

from .messages import EndedMessage, Fence, FromOwner, FromWorker, GrantedMessage, OfferMessage

# -- of the owner


class Publish(NamedTuple):
    """Put the offer of this run into the queue of its pool."""

    task: str
    pool: str


class Tell(NamedTuple):
    worker: str
    message: FromOwner


class SendGrant(NamedTuple):
    """Send `granted`, with what only the owner has."""

    task: str
    claim: Claim


class Commit(NamedTuple):
    """Record that the run has started, by this claim; then say so with `committed`."""

    task: str
    fence: Fence
    claim: Claim


class Conclude(NamedTuple):
    """Record the ending of the run; then say so with `recorded`."""

    task: str
    worker: str
    ended: EndedMessage


class Settle(NamedTuple):
    """An ending of a run that is not followed here: acknowledge it, if the ledger has the run as over."""

    worker: str
    ended: EndedMessage


class Lose(NamedTuple):
    task: str
    reason: str
    why: str  # one word, to count it by


class Unbegun(NamedTuple):
    """The run was claimed and never begun: it can be offered again, whatever it is."""

    task: str


class StopStray(NamedTuple):
    """A worker has a run that is not followed here: stop it, if it is over because it was to be stopped.
    `times` as in CancelMessage."""

    worker: str
    task: str
    nonce: str
    times: int


OwnerEffect: TypeAlias = Publish | Tell | SendGrant | Commit | Conclude | Settle | Lose | Unbegun | StopStray


# -- of a worker


class Say(NamedTuple):
    message: FromWorker


class Keep(NamedTuple):
    """Write the claim to the journal, before anything that follows; `synced`: with fsync."""

    nonce: str
    synced: bool = False


class Drop(NamedTuple):
    """Remove the claim from the journal, and all that was kept of its run."""

    granted: GrantedMessage


class Begin(NamedTuple):
    granted: GrantedMessage


class TakeUp(NamedTuple):
    """A command that was begun in an earlier life of the worker goes on: follow it."""

    granted: GrantedMessage


class Describe(NamedTuple):
    """Say how the run stands."""

    nonce: str


class Taken(NamedTuple):
    """The offer was claimed: take it out of the queue."""

    offer: OfferMessage


WorkerEffect: TypeAlias = Say | Keep | Drop | Begin | TakeUp | Describe | Taken
