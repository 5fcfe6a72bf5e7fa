"""The owner's side of joining: trades a join line for the login of a worker, at most once."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Sequence

import msgspec

from meantime.kernel.errors import InvalidInput, MeantimeError, Refused
from meantime.ports.carrier import check_name

from .join_line import ANOTHER, JoinLine
from .join_request import PROTOCOL, JoinAnswer, JoinRequest
from .server_accounts import WILDCARDS, AccountFiles, AccountRecord, bracketed
from .server_config import JoinCredential

EXPIRES = 15 * 60.0  # seconds that a join line is good for
LONGEST = 7 * 24 * 3600.0
MOST_REQUEST = 4096  # bytes
OWN_LINE = "own"  # the line of workers of this machine and user: it is in a private file, and never printed
PASSWORD = re.compile(r"[A-Za-z0-9_-]{43,64}")
AGAIN = "meantime workers join-line"


def make_line(
    files: AccountFiles, pools: Sequence[str], *, address: str = "", expires: float = EXPIRES
) -> JoinLine:
    """Makes a join line for a worker on another machine.

    Args:
        pools: Pools that the worker may take work of.
        address: Host and port that workers connect to; empty: those that the server listens on.
        expires: Seconds.

    Raises:
        InvalidInput: The server listens on loopback only, or on every address and none was given.
    """
    names = tuple(check_name("pool", pool) for pool in pools)
    if not 1 <= expires <= LONGEST:
        raise InvalidInput(f"A join line lasts from 1 s to {LONGEST / 86400:.0f} days.")
    with files.change() as record:
        if record.tls is None:
            raise InvalidInput(
                "The carrier listens on this machine only.",
                hint="Let it listen for others: meantime down, then "
                "meantime up --carrier local --listen ADDRESS",
            )
        server = _server(record, address)
        line = JoinCredential(secrets.token_urlsafe(24), names, time.time() + expires)
        id = secrets.token_hex(8)
        record.add_line(id, line)
        return _line(record, server, id, line)


def own_line(files: AccountFiles) -> JoinLine:
    """The line for workers of the same machine and user, each with a name and a login of its own."""
    with files.change() as record:
        line = record.lines.get(OWN_LINE)
        if line is None:
            line = JoinCredential(secrets.token_urlsafe(24), (), 0.0, is_own=True)
            record.lines[OWN_LINE] = line
        host = WILDCARDS.get(record.host, record.host)
        return _line(record, f"{bracketed(host)}:{record.port}", OWN_LINE, line)


def _line(record: AccountRecord, server: str, id: str, line: JoinCredential) -> JoinLine:
    pinned = bytes.fromhex(record.fingerprint)
    return JoinLine(server, record.space, pinned, record.owner_key, id, line.password, int(line.expires))


def _server(record: AccountRecord, address: str) -> str:
    host, _, port = (
        address.rpartition(":") if re.search(r"[^:\]]:\d+$|\]:\d+$", address) else (address, "", "")
    )
    if not host and record.host in WILDCARDS:
        raise InvalidInput(
            f"The carrier listens on every address ({record.host}).",
            hint=f"Say which one workers connect to: {AGAIN} --address HOST",
        )
    return f"{bracketed((host or record.host).strip('[]'))}:{port or record.port}"


def answer_join(files: AccountFiles, id: str, data: bytes) -> JoinAnswer | None:
    """The answer to a request that came with the login of this line; None: it cannot be read at all."""
    try:
        request = msgspec.json.decode(data[:MOST_REQUEST], type=JoinRequest)
    except msgspec.MsgspecError:
        return None
    name = request.name[:64]
    try:
        return JoinAnswer(line=id, name=name, pools=_traded(files, id, request))
    except (MeantimeError, OSError) as problem:
        hint = problem.hint if isinstance(problem, MeantimeError) else ""
        return JoinAnswer(line=id, name=name, error=getattr(problem, "message", str(problem)), hint=hint)


def _traded(files: AccountFiles, id: str, request: JoinRequest) -> tuple[str, ...]:
    """The pools of the login that the line was traded for."""
    if request.protocol != PROTOCOL:
        raise InvalidInput(
            f"This worker joins by protocol {request.protocol}; the owner speaks {PROTOCOL}.",
            hint="Install the same version of Meantime on the owner and its workers.",
        )
    check_name("worker", request.name)
    check_name("pool", request.pool)
    if PASSWORD.fullmatch(request.password) is None:
        raise InvalidInput("The worker's password is not one.")
    used_by = hashlib.sha256(request.password.encode()).hexdigest()
    with files.change() as record:
        line = record.lines.get(id)
        if line is None:
            raise Refused("This join line has expired.", hint=ANOTHER)
        known = record.workers.get(request.name)
        if line.used_by == used_by and known is not None:
            return known.pools  # the answer was lost
        if line.used_by:
            raise Refused(
                f"This join line was used already, for worker {line.worker!r}.",
                hint=f"One line is good for one worker. On the owner's machine: {AGAIN}. If that worker is "
                f"not yours: meantime workers revoke {line.worker}",
            )
        pools = _pools(line, known.pools if known is not None else (), request.pool)
        if known is not None and not (line.is_own and known.is_own):
            raise Refused(
                f"A worker named {request.name!r} has a login already.",
                hint=f"Join with another --name, or on the owner's machine: "
                f"meantime workers revoke {request.name}. The line is still good.",
            )
        record.add_worker(request.name, pools, request.password, is_own=line.is_own)
        if not line.is_own:
            line.worker, line.used_by = request.name, used_by
        return pools


def _pools(line: JoinCredential, known: tuple[str, ...], asked: str) -> tuple[str, ...]:
    if line.is_own:
        return tuple(dict.fromkeys((*known, asked)))
    if asked not in line.pools:
        raise Refused(
            f"This join line is not for pool {asked!r}; it is for {', '.join(line.pools)}.",
            hint=f"Join with --pool, or on the owner's machine: {AGAIN} --pool {asked}. "
            "The line is still good.",
        )
    return line.pools
