"""The owner's memory of each offer, run and worker, for owner_state.py."""

from __future__ import annotations

from meantime.kernel.model import Claim as ClaimOnRecord
from meantime.kernel.pool_slots import Need, split_place

from .capabilities import Capability
from .messages import AliveMessage, Fence

ASK_AFTER = 2  # `alive`s that do not list a claim, before it is asked for: one may be older than its grant
ASK_AGAIN = 1.0  # seconds between two questions for the same claim


class OfferState:
    __slots__ = ("empty_for", "fence", "need", "nonce", "pool", "since")

    def __init__(self, fence: Fence, need: Need, since: float) -> None:
        self.fence = fence
        self.need = need
        self.pool, _ = split_place(need.place)
        self.nonce = ""  # of the claim that is being committed
        self.since = since
        self.empty_for = 0.0  # seconds that the queue was empty and nobody had claimed it


class RunState:
    __slots__ = ("asked_at", "claim", "fence", "is_begun", "is_concluding", "missing")

    def __init__(self, fence: Fence, claim: ClaimOnRecord, *, asked: bool) -> None:
        self.fence = fence
        self.claim = claim
        self.is_begun = False  # the worker has said something of it, so it has what it needs
        self.is_concluding = False
        self.missing = ASK_AFTER if asked else 0  # `alive`s in a row that do not list it
        self.asked_at = -ASK_AGAIN  # when it was last asked for


class WorkerState:
    """A worker by its name and home, with its last message. `unsure` are the few runs that are looked at one
    by one: a worker may have thousands, and lists them twice a second."""

    __slots__ = (
        "alive",
        "can",
        "is_away",
        "key",
        "opens_input",
        "runs",
        "silent",
        "skew",
        "strays",
        "unsure",
    )

    def __init__(self) -> None:
        self.alive: AliveMessage | None = None
        self.can: Capability | None = None
        self.is_away = False  # beyond its lease
        self.key = ""  # that grants are sealed for, by its last message that had one
        self.opens_input = False  # with this key
        self.silent = 0.0  # seconds
        self.skew = 0.0  # seconds that its clock is ahead of ours, and of the way here
        self.runs: dict[str, str] = {}  # tasks, by the nonces of their claims
        self.unsure: set[str] = set()  # claims that it has not said to have begun, or did not list
        self.strays: dict[str, float] = {}  # claims that it lists and nobody follows, with their seconds
