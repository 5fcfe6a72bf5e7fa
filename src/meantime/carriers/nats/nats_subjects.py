"""Subjects of one owner on a NATS server, and the few that a worker's account needs.

SPACE.offer.POOL.KEY          offers, in the stream meantime_SPACE; one consumer for each pool
SPACE.owner.WORKER            messages of this worker to the owner
SPACE.worker.WORKER.message   messages to this worker
SPACE.worker.WORKER.pull.N    answers to its pulls
SPACE.taken.N                 answers to the owner's offers
SPACE.join.LINE               the owner is asked to trade a join line for a login
SPACE.joined.LINE             its answers
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from meantime.ports.carrier import check_name


class NatsSubjects(Struct, frozen=True):
    space: str

    @property
    def stream(self) -> str:
        return f"meantime_{self.space}"

    @property
    def all_offers(self) -> str:
        return f"{self.space}.offer.*.*"

    @property
    def from_workers(self) -> str:
        return f"{self.space}.owner.*"

    @property
    def taken(self) -> str:
        return f"{self.space}.taken"

    def offer(self, pool: str, key: str) -> str:
        return f"{self.space}.offer.{pool}.{key}"

    def to_owner(self, worker: str) -> str:
        return f"{self.space}.owner.{worker}"

    def to_worker(self, worker: str) -> str:
        return f"{self.space}.worker.{worker}.message"

    def pulled(self, worker: str) -> str:
        return f"{self.space}.worker.{worker}.pull"

    def next_of(self, pool: str) -> str:
        return f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{pool}"

    @property
    def all_joins(self) -> str:
        return f"{self.space}.join.*"

    def join(self, line: str) -> str:
        return f"{self.space}.join.{line}"

    def joined(self, line: str) -> str:
        return f"{self.space}.joined.{line}"

    def join_permissions(self, line: str) -> dict[str, list[str]]:
        check_name("join line", line)
        return {"publish": [self.join(line)], "subscribe": [self.joined(line)]}

    def permissions(self, worker: str, pools: Iterable[str]) -> dict[str, list[str]]:
        """Four subjects for a worker of one pool: pull, acknowledge, tell the owner, be told. The account can
        make no offer, receive no message of another worker, and purge or delete nothing."""
        check_name("worker", worker)
        names = [check_name("pool", pool) for pool in pools]
        return {
            "publish": [
                *(self.next_of(pool) for pool in names),
                *(f"$JS.ACK.{self.stream}.{pool}.>" for pool in names),
                self.to_owner(worker),
            ],
            "subscribe": [f"{self.space}.worker.{worker}.>"],
        }
