"""Carriers by their address, as `[engine] carrier` in the configuration has it. Loads only what it needs."""

from __future__ import annotations

from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import ACK_WAIT, OwnerCarrier, WorkerCarrier

HINT = "Use tls://HOST:4222, nats://127.0.0.1:4222 or postgres://HOST/DATABASE. An owner may also use local."


def owner_carrier(url: str, *, ack_wait: float = ACK_WAIT) -> OwnerCarrier:
    """The owner's end for an address, not open yet.

    Raises:
        InvalidInput: The address is of no carrier that we know, or the extra is not installed.
    """
    match _scheme(url):
        case "nats":
            from .nats.nats_address import read_address
            from .nats.nats_owner import NatsOwner

            return NatsOwner(read_address(url), ack_wait=ack_wait)
        case _:
            from .postgres.postgres_client import read_postgres_address
            from .postgres.postgres_owner import PostgresOwner

            return PostgresOwner(read_postgres_address(url), ack_wait=ack_wait)


def worker_carrier(url: str, worker: str) -> WorkerCarrier:
    """A worker's end for an address with the worker's own login, not open yet. Raises as `owner_carrier`."""
    match _scheme(url):
        case "nats":
            from .nats.nats_address import read_address
            from .nats.nats_worker import NatsWorker

            return NatsWorker(read_address(url), worker)
        case _:
            from .postgres.postgres_client import read_postgres_address
            from .postgres.postgres_worker import PostgresWorker

            return PostgresWorker(read_postgres_address(url), worker)


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0]
    known = {"nats": "nats", "tls": "nats", "postgres": "postgres", "postgresql": "postgres"}
    if "://" not in url or scheme not in known:
        raise InvalidInput("This is not the address of a carrier.", hint=HINT)
    return known[scheme]
