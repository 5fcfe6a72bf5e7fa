"""The worker's side of joining: trades the login of a join line for one of its own.

The worker makes its own password and sends it, over TLS; the answer holds no secret. So somebody else who has
the line learns nothing by listening, and a request that is repeated because its answer was lost is the same.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from meantime.kernel.errors import Disconnected, InvalidInput, Refused

from .join_line import ANOTHER, JoinLine
from .nats_address import TLS_NAME
from .nats_client import LoginRefused, NatsClient, NatsMessage, check_nats, close, log_in
from .nats_subjects import NatsSubjects

PROTOCOL = 1
ASK_AGAIN = 1.0  # seconds
NEW_LINE_WAIT = 8.0  # seconds until the server knows a line: it waits for those that are slow to log in
MOST_WAIT = 15.0  # seconds for the owner's answer


class JoinRequest(Struct, frozen=True, kw_only=True):
    """The worker's request. It made the password itself."""

    name: str
    pool: str
    password: str
    protocol: int = PROTOCOL


class JoinAnswer(Struct, frozen=True, kw_only=True):
    """The owner's answer, which it signs. An error says why not, and what to do."""

    line: str
    name: str
    pools: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""
    protocol: int = PROTOCOL


async def request_login(
    line: JoinLine, authority: str, request: JoinRequest, opened: Callable[[bytes], bytes | None]
) -> JoinAnswer:
    """Asks until the owner answers.

    Args:
        authority: The authority's certificate as PEM; empty on loopback.
        opened: The signed bytes of an answer; None if the owner of the line did not sign them.

    Raises:
        Refused: The server does not know the line any more, or the owner refuses.
        Disconnected: The server is gone, or the owner does not answer.
        InvalidInput: The answer is not of the owner that the line names.
    """
    check_nats()

    def read(data: bytes) -> JoinAnswer | None:
        answer = _verified(opened(data))
        return answer if (answer.line, answer.name) == (line.id, request.name) else None

    client = await _log_in(line, authority)
    try:
        answer = await _ask(client, line, msgspec.json.encode(request), read)
    finally:
        await close(client)
    if answer.error:
        raise Refused(answer.error[:1_000], hint=answer.hint[:1_000])
    return answer


def _verified(signed: bytes | None) -> JoinAnswer:
    if signed is None:
        raise InvalidInput(
            "The answer is not signed with the owner key of the join line.",
            hint=f"The line is not of this owner, or somebody else answers there. {ANOTHER}",
        )
    try:
        answer = msgspec.json.decode(signed, type=JoinAnswer)
        if answer.protocol == PROTOCOL:
            return answer
    except msgspec.MsgspecError:
        pass
    raise InvalidInput(
        "The owner's answer cannot be read.",
        hint="Install the same version of Meantime on the owner and its workers.",
    )


async def _log_in(line: JoinLine, authority: str) -> NatsClient:
    async def ignore(*problem: object) -> None: ...

    is_over = 0 < line.expires <= time.time()
    try:
        return await log_in(
            line.server,
            user=f"join-{line.id}",
            password=line.password,
            tls=ssl.create_default_context(cadata=authority) if authority else None,
            tls_name=TLS_NAME if authority else "",
            failed=ignore,
            closed=ignore,
            patience=0.0 if is_over else NEW_LINE_WAIT,
        )
    except LoginRefused as refused:
        raise _unknown_line(line, refused) from None
    except (ConnectionError, TimeoutError) as problem:
        raise Disconnected(
            f"The server at {line.server} could not be logged in to: {problem}.",
            hint="Is the daemon up there (`meantime status`)? Its `meantime doctor` looks for the cause.",
        ) from None


def _unknown_line(line: JoinLine, refused: LoginRefused) -> Refused:
    over = time.time() - line.expires
    if line.expires and over >= 0:
        return Refused(f"This join line expired {over / 60:.0f} min ago.", hint=ANOTHER)
    return Refused(f"The owner does not know this join line, or has revoked it ({refused}).", hint=ANOTHER)


async def _ask(
    client: NatsClient, line: JoinLine, request: bytes, read: Callable[[bytes], JoinAnswer | None]
) -> JoinAnswer:
    """Workers of the owner's own machine share a line, so an answer may be to another of them."""
    subjects = NatsSubjects(line.space)
    answered: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()

    async def take(message: NatsMessage) -> None:
        if answered.done():
            return
        try:
            found = read(message.data)
            if found is not None:
                answered.set_result(found)
        except InvalidInput as problem:
            answered.set_exception(problem)

    try:
        async with asyncio.timeout(MOST_WAIT):
            await client.subscribe(subjects.joined(line.id), cb=take)
            while not answered.done():
                await client.publish(subjects.join(line.id), request)
                await client.flush()
                await asyncio.wait((answered,), timeout=ASK_AGAIN)
    except Exception as problem:
        said = f"The owner did not answer for {MOST_WAIT:.0f} s; its server does."
        if not isinstance(problem, TimeoutError):
            said = f"The server was lost before the owner answered: {problem}."
        raise Disconnected(
            said,
            hint="Is the daemon up there (`meantime status`)? Then use the line again: it is still good.",
        ) from None
    return answered.result()
