"""A look at a NATS server with somebody's login, for `meantime doctor`. It changes nothing there."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from meantime.ports.carrier import MOST_BYTES

from .nats_address import NatsAddress
from .nats_client import NatsClient, NatsMessage, check_nats, close, log_in
from .nats_end import HEADROOM
from .nats_subjects import NatsSubjects

LEAST_PAYLOAD = MOST_BYTES + HEADROOM
REFUSAL_WAIT = 2.0  # seconds for the server to refuse what it refuses
NOBODY = "doctor-looks"  # a worker that there is not


class ServerLook(Struct, frozen=True):
    """Attributes:
    problem: Why it could not be logged in to; empty: it could.
    max_payload: Bytes of the largest message that the server takes.
    allowed: Subjects that a worker's login must not use, and may.
    """

    problem: str = ""
    max_payload: int = 0
    allowed: tuple[str, ...] = ()


async def look_at_server(address: NatsAddress, worker: str = "") -> ServerLook:
    """Connects, and with the name of a worker tries what its login must not do: each try is harmless where it
    succeeds, and is refused where it should be."""
    check_nats()
    refused: list[str] = []

    async def failed(problem: Exception) -> None:
        refused.append(str(problem))

    async def ignore() -> None: ...

    try:
        client = await log_in(
            address.servers[0],
            user=address.user,
            password=address.password,
            tls=address.tls(),
            tls_name=address.tls_name,
            failed=failed,
            closed=ignore,
        )
    except Exception as problem:
        return ServerLook(problem=str(problem) or type(problem).__name__)
    try:
        allowed = await _try_all(client, address, refused) if worker else ()
        return ServerLook(max_payload=client.max_payload, allowed=allowed)
    except Exception as problem:  # the package has many
        return ServerLook(problem=str(problem) or type(problem).__name__)
    finally:
        await close(client)


async def _try_all(client: NatsClient, address: NatsAddress, refused: list[str]) -> tuple[str, ...]:
    subjects = NatsSubjects(address.space)
    sent = (
        subjects.offer("default", NOBODY),
        subjects.to_owner(NOBODY),
        subjects.to_worker(NOBODY),
        f"$JS.API.STREAM.INFO.{subjects.stream}",
    )
    heard = (">", subjects.from_workers, subjects.to_worker(NOBODY), subjects.all_offers)

    async def ignore(message: NatsMessage) -> None: ...

    for subject in sent:
        await client.publish(subject, b"")
    for subject in heard:
        await client.subscribe(subject, cb=ignore)
    await client.flush()
    over = asyncio.get_running_loop().time() + REFUSAL_WAIT
    left = _not_refused(sent, heard, refused)
    while left and asyncio.get_running_loop().time() < over:
        await asyncio.sleep(0.05)
        left = _not_refused(sent, heard, refused)
    return left


def _not_refused(sent: tuple[str, ...], heard: tuple[str, ...], refused: list[str]) -> tuple[str, ...]:
    texts = [text.lower() for text in refused]

    def is_refused(way: str, subject: str) -> bool:
        return any(way in text and f'"{subject.lower()}"' in text for text in texts)

    return (
        *(f"publish {subject}" for subject in sent if not is_refused("publish", subject)),
        *(f"subscribe {subject}" for subject in heard if not is_refused("subscription", subject)),
    )
