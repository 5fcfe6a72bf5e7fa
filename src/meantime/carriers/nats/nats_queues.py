"""The stream of the offers and its consumers, over the JSON API of JetStream."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from .nats_client import NatsClient
from .nats_subjects import NatsSubjects

MOST_QUEUED = 65_536  # offers in all queues together; the server refuses more
MOST_QUEUED_BYTES = 256 * 1024 * 1024
MOST_WAITING_PULLS = 4096
API_WAIT = 3.0  # seconds for an answer of the server
NO_MESSAGE, NO_STREAM, NO_CONSUMER, OTHER_CONFIG = 10037, 10059, 10014, 10058  # codes of the server's errors


class _Problem(Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _Answer(Struct):
    error: _Problem | None = None


class QueueError(Exception):
    """The server answered, and the answer is an error."""

    def __init__(self, problem: _Problem) -> None:
        super().__init__(f"NATS: {problem.description} ({problem.err_code}).")
        self.code = problem.err_code


class NatsQueues:
    def __init__(self, client: NatsClient, subjects: NatsSubjects, replicas: int, ack_wait: float) -> None:
        self._client = client
        self._subjects = subjects
        self._replicas = replicas
        self._ack_wait = ack_wait

    async def make(self, pools: Iterable[str]) -> None:
        """Makes the stream and the consumers that are not there, and sets what was set otherwise."""
        config = self._stream()
        try:
            await self._ask(f"STREAM.CREATE.{self._subjects.stream}", config)
        except QueueError as problem:
            if problem.code != OTHER_CONFIG:
                raise
            await self._ask(f"STREAM.UPDATE.{self._subjects.stream}", config)
        for pool in pools:
            await self.make_consumer(pool)

    async def make_consumer(self, pool: str) -> None:
        config = {
            "durable_name": pool,
            "filter_subject": self._subjects.offer(pool, "*"),
            "ack_policy": "explicit",
            "ack_wait": int(self._ack_wait * 1e9),
            "deliver_policy": "all",
            "replay_policy": "instant",
            "max_deliver": -1,
            "max_ack_pending": MOST_QUEUED,
            "max_waiting": MOST_WAITING_PULLS,
            "mem_storage": True,
        }
        body = {"stream_name": self._subjects.stream, "config": config}
        await self._ask(f"CONSUMER.DURABLE.CREATE.{self._subjects.stream}.{pool}", body)

    async def has_consumer(self, pool: str) -> bool:
        try:
            await self._ask(f"CONSUMER.INFO.{self._subjects.stream}.{pool}", None)
        except QueueError as problem:
            if problem.code in (NO_STREAM, NO_CONSUMER):
                return False
            raise
        return True

    async def is_empty(self, pool: str) -> bool:
        """The stream's leader is asked: an offer stays in the stream until it is acknowledged. The counts of
        the consumer can lag behind on a cluster."""
        body = {"seq": 1, "next_by_subj": self._subjects.offer(pool, "*")}
        try:
            await self._ask(f"STREAM.MSG.GET.{self._subjects.stream}", body)
        except QueueError as problem:
            if problem.code == NO_MESSAGE:
                return True
            raise
        return False

    def _stream(self) -> dict[str, object]:
        return {
            "name": self._subjects.stream,
            "subjects": [self._subjects.all_offers],
            "retention": "workqueue",
            "storage": "memory",  # nothing of an offer is written to the server's disk
            "discard": "new",
            "max_msgs": MOST_QUEUED,
            "max_bytes": MOST_QUEUED_BYTES,
            "max_msgs_per_subject": 1,
            "num_replicas": self._replicas,
            "allow_direct": False,  # any server might answer in place of the leader
            "duplicate_window": 100_000_000,  # ns: offers have no id there; the shortest costs least
        }

    async def _ask(self, api: str, body: object) -> None:
        payload = b"" if body is None else msgspec.json.encode(body)
        message = await self._client.request(f"$JS.API.{api}", payload, timeout=API_WAIT)
        problem = msgspec.json.decode(message.data, type=_Answer).error
        if problem is not None:
            raise QueueError(problem)
