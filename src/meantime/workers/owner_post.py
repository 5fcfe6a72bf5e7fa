"""The owner's messages: signed, cut and sent; joined and read. Everything may be lost on its way."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from meantime.kernel.model import Task
from meantime.kernel.pool_slots import split_place
from meantime.ports.carrier import OwnerCarrier

from . import messages as say
from .message_batch import MessageBatch, unbatched
from .message_parts import SenderParts
from .owner_key import Signer

logger = logging.getLogger("meantime")
HEARD_WAIT = 0.005  # seconds: nobody waits for an acknowledgement, and several need one signature
MOST_LOGGED = 1_000  # workers of which a refused message is logged


class OwnerPost:
    """`stranger` is called with the name and the protocol of a worker that speaks another one."""

    def __init__(
        self,
        carrier: OwnerCarrier,
        load_signer: Callable[[], Signer],
        counts: Counter[str],
        stranger: Callable[[str, int], None],
    ) -> None:
        self._carrier = carrier
        self._load_signer = load_signer
        self._signer: Signer | None = None
        self._counts = counts
        self._stranger = stranger
        self.batch = MessageBatch(carrier.to_worker, lambda data: self.signer.signed(data))
        self._parts = SenderParts()
        self._refused: set[str] = set()  # workers of which one was logged
        self.pools: set[str] = set()  # that have a queue

    @property
    def signer(self) -> Signer:
        """Loaded when it is first used: the key is beside the ledger, which must be ours by then."""
        if self._signer is None:
            self._signer = self._load_signer()
        return self._signer

    def load_key(self) -> None:
        """Raises InvalidInput for a key that cannot be used: at the open, and not at the first offer."""
        assert self.signer

    def tell(self, worker: str, message: say.FromOwner) -> None:
        wait = HEARD_WAIT if isinstance(message, say.HeardMessage) else 0.0
        self.batch.add(worker, say.encode(message), wait=wait)

    async def publish(self, task: Task) -> None:
        pool, _ = split_place(task.place)
        if pool not in self.pools:
            await self._carrier.add_pool(pool)
            self.pools.add(pool)
        self._counts["offered"] += 1
        self._carrier.offer(pool, say.offer_key(task), self.signer.signed(say.encode(say.offer_of(task))))

    def withdraw(self, task: Task) -> None:
        pool, _ = split_place(task.place)
        self._carrier.withdraw(pool, say.offer_key(task))

    def read(self, worker: str, frame: bytes) -> list[say.FromWorker]:
        """The messages that this part completes; what cannot be read is counted and left out."""
        data = self._parts.joined(worker, frame)
        try:
            return [] if data is None else [say.from_worker(message) for message in unbatched(data)]
        except say.UnreadableMessage as problem:
            self._refuse(worker, problem)
            return []

    def _refuse(self, worker: str, problem: say.UnreadableMessage) -> None:
        self._counts["refused_messages"] += 1
        if problem.code == "unknown_protocol":
            self._stranger(worker, problem.protocol)
            self.tell(worker, say.DeniedMessage(nonce=""))  # which it refuses, and logs
        if worker not in self._refused and len(self._refused) < MOST_LOGGED:
            self._refused.add(worker)
            logger.warning("A message of worker %s was refused: %s", worker, problem)
