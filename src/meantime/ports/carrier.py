"""How work and messages travel between the owner of a ledger and workers on other machines.

A carrier holds a queue of offers for each pool, and passes messages between the owner and each worker by
name. It carries bytes and reads none of them. A carrier promises very little, so that nothing needs to be
true of its server:

- It may lose, double, reorder and delay everything, and forget its queues at any time. Callers repeat.
- It never shows an offer of one pool to a worker that pulls from another, and never passes a message to a
  worker that it is not addressed to.
- The sender of a message is established by the carrier's server, and not by the message.
- `is_empty` never says true while an offer may still be pulled. Offers are repeated on the strength of it.

Sends return at once. They go into a buffer with a limit, and are dropped when the buffer is full: a caller
never waits for the network. Callbacks are called on the event loop that opened the carrier; an exception of
theirs is logged, and the carrier goes on.

`meantime.testing.exercise_carrier` proves an implementation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput

# Bytes of one offer or one message: room for a piece of 256 KB as base64 with what is around it, and half of
# the 1 MB that NATS allows.
MOST_BYTES = 512 * 1024
MOST_BUFFERED = 4096  # offers and messages that wait in this process to be sent; more are dropped
MOST_BUFFERED_BYTES = 64 * 1024 * 1024  # their bytes, all in all
MOST_PULLED = 256  # offers that one pull returns
ACK_WAIT = 10.0  # seconds after which an offer that was pulled and not acknowledged is another worker's
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class CarrierState(Struct, frozen=True):
    """Whether the carrier's server is connected, and if it is not, why: a sentence for people."""

    up: bool
    reason: str = ""


class Offered(Struct, frozen=True):
    """An offer as a worker pulled it. `receipt` is the carrier's own, to acknowledge it with."""

    pool: str
    key: str
    data: bytes
    receipt: str = ""


StateChanged: TypeAlias = Callable[[CarrierState], object]
FromWorker: TypeAlias = Callable[[str, bytes], object]  # called with the worker's name, and what it sent
FromOwner: TypeAlias = Callable[[bytes], object]


class Carrier(Protocol):
    """Both ends have this in common."""

    @property
    def state(self) -> CarrierState: ...

    @property
    def dropped(self) -> int:
        """Offers and messages that this end dropped: its buffers were full, or it was not connected."""
        ...

    async def close(self) -> None:
        """Sends what is buffered, for at most a second, then disconnects. No callback comes afterwards, and
        nothing of this end is left running. Closing twice is harmless."""
        ...


class OwnerCarrier(Carrier, Protocol):
    """The owner's end. There is one of it: it makes the queues, and takes every message of the workers."""

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        """Connects. Returns once it is connected, or after a few seconds without: it goes on trying, and
        `changed` says when it succeeds. Reconnects by itself ever after. Raises InvalidInput only for what
        trying again cannot mend: an address that cannot be read, a package that is not installed."""
        ...

    async def add_pool(self, pool: str) -> None:
        """Makes the queue of a pool, now and whenever the server has forgotten it. Adding it twice is
        harmless."""
        ...

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        """Puts an offer into the queue of a pool that was added. An offer with the key of one that is still
        there may replace it.

        Returns:
            False if it was dropped. True promises nothing: the offer may be lost on its way.

        Raises:
            InvalidInput: The pool or the key is not a name, or the data is larger than MOST_BYTES.
        """
        ...

    def withdraw(self, pool: str, key: str) -> None:
        """Takes an offer out of the queue, if that is easy: a worker may pull it nevertheless."""
        ...

    async def is_empty(self, pool: str) -> bool:
        """True if the queue holds no offer: none that waits, none that is on its way there, and none that
        was pulled and is not acknowledged. False whenever that cannot be said for certain, for instance
        because the server does not answer. A server that has forgotten the queue gets a new one, which is
        empty."""
        ...

    def to_worker(self, worker: str, data: bytes) -> bool:
        """Sends a message to one worker. Nothing keeps it for a worker that is not connected.

        Returns:
            False if it was dropped. True promises nothing.

        Raises:
            InvalidInput: The worker is not a name, or the data is larger than MOST_BYTES.
        """
        ...


class WorkerCarrier(Carrier, Protocol):
    """A worker's end, under the name that its credentials were made for."""

    @property
    def worker(self) -> str: ...

    async def open(self, receive: FromOwner, changed: StateChanged) -> None:
        """As the owner's."""
        ...

    async def pull(self, pool: str, free: int, wait: float) -> list[Offered]:
        """Takes at most `free` offers from the queue of a pool. Returns as soon as there is one, with those
        that are there at that moment; an empty list after `wait` seconds, even if the server cannot be
        reached. One pull at a time. The offers of a pull that was cancelled are another worker's after
        ACK_WAIT.

        Raises:
            InvalidInput: The pool is not a name, or `free` is not within 1 and MOST_PULLED.
        """
        ...

    def acknowledge(self, offered: Offered) -> None:
        """Takes the offer out of its queue for good. An acknowledgement can be lost: the offer then comes
        again, here or elsewhere."""
        ...

    def release(self, offered: Offered) -> None:
        """Gives the offer back, so that another worker can pull it at once. It may come back here."""
        ...

    def to_owner(self, data: bytes) -> bool:
        """Sends a message to the owner, who is told this worker's name with it. As `to_worker`."""
        ...


def check_name(what: str, name: str) -> str:
    """The name of a pool, a worker or an offer, which every carrier can make an address of.

    Raises:
        InvalidInput: It is not a name; the text says what is.
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"{shown(name)} is not the name of {'an' if what[0] in 'aeiou' else 'a'} {what}.",
            hint="Use up to 64 letters, digits, '-' and '_', and begin with a letter or a digit.",
        )
    return name


def check_size(what: str, data: bytes) -> bytes:
    """The data of one offer or message.

    Raises:
        InvalidInput: It is larger than MOST_BYTES.
    """
    if len(data) > MOST_BYTES:
        raise InvalidInput(
            f"This {what} has {len(data):,} bytes; a carrier takes at most {MOST_BYTES:,}.",
            hint="Send it in pieces.",
        )
    return data


def check_free(free: int) -> int:
    """How many offers a pull may ask for.

    Raises:
        InvalidInput: It is not within 1 and MOST_PULLED.
    """
    if not 1 <= free <= MOST_PULLED:
        raise InvalidInput(f"A pull takes from 1 to {MOST_PULLED} offers, not {shown(free)}.")
    return free
