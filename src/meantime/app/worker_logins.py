"""The logins of this machine's workers, as they got them by joining. Each is in the folder of its worker."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.carriers.nats.join_line import ANOTHER, PREFIX, JoinLine, read_join_line
from meantime.carriers.nats.join_request import JoinRequest, request_login
from meantime.carriers.nats.nats_address import TLS_NAME, NatsAddress
from meantime.carriers.nats.pinned_authority import fetch_authority
from meantime.daemon.home import Home
from meantime.kernel.errors import InvalidInput, NotFound, Refused
from meantime.ports.carrier import check_name
from meantime.system.atomic_file import replace_file
from meantime.workers.owner_key import Verifier

from .local_owner import LocalJoin

MOST_FILE = 64 * 1024  # bytes


class WorkerLogin(Struct, frozen=True):
    """The content of `login.json` in a worker's folder. `is_own`: the owner is on this machine, and of the
    same user."""

    name: str
    address: NatsAddress
    owner_key: str
    pools: tuple[str, ...]
    is_own: bool = False


class _Joining(Struct):
    """The content of `joining.json`: a trade that was begun. Killed in between, it can be repeated."""

    line: str
    password: str


class GivenLine(Struct, frozen=True):
    line: JoinLine
    is_own: bool = False


def worker_folder(home: Home, name: str) -> Path:
    return home.folder / "worker" / name


def make_worker_folder(home: Home, name: str) -> Path:
    """Only its user can look into it, or see which workers there are."""
    folder = worker_folder(home, name)
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
    return folder


def stored_logins(home: Home) -> list[WorkerLogin]:
    """The logins that can be read, by name."""
    found: list[WorkerLogin] = []
    for path in sorted((home.folder / "worker").glob("*/login.json")):
        with contextlib.suppress(msgspec.MsgspecError, OSError):
            found.append(msgspec.json.decode(path.read_bytes(), type=WorkerLogin))
    return found


def default_name() -> str:
    return socket.gethostname().partition(".")[0]


def read_given(text: str) -> GivenLine:
    """A join line; `-` reads it from stdin, and a path from a file, so that no list of processes shows it.
    The `worker.json` of an owner on this machine does as well."""
    if text.startswith(PREFIX):
        return GivenLine(read_join_line(text))
    if text == "-":
        return GivenLine(read_join_line(sys.stdin.read(MOST_FILE)))
    try:
        with open(text, "rb") as file:
            data = file.read(MOST_FILE)
    except OSError as problem:
        raise InvalidInput(
            f"{text[:200]!r} is neither a join line nor a file: {problem.strerror}.", hint=ANOTHER
        ) from None
    if data.lstrip().startswith(b"{"):
        return GivenLine(read_join_line(read_local(Path(text)).line), is_own=True)
    return GivenLine(read_join_line(data.decode("utf-8", "replace")))


def read_local(path: Path) -> LocalJoin:
    """Raises NotFound: no owner has left it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=LocalJoin)
    except (OSError, msgspec.MsgspecError):
        raise NotFound(
            "There is no carrier to work for.",
            hint="On the owner's machine, `meantime workers join-line` prints a line for "
            "`meantime worker --join -`. For the daemon of this home: meantime up --carrier local. For a "
            "server of your own: [worker] carrier.",
        ) from None


async def join_owner(home: Home, given: GivenLine, name: str, pool: str) -> WorkerLogin:
    """Trades a join line for a login, and stores it. Nothing is stored that was not verified.

    Raises:
        InvalidInput, Refused, Disconnected: It cannot be traded; the text says why, and what to do.
    """
    line = given.line
    check_name("worker", name)
    check_name("pool", pool)
    verifier = Verifier(line.owner_key)
    authority = ""
    if line.fingerprint:
        authority = await asyncio.to_thread(fetch_authority, line.server, line.fingerprint)
    folder = make_worker_folder(home, name)
    password = _password(folder, line.id)
    request = JoinRequest(name=name, pool=pool, password=password)
    try:
        answer = await request_login(line, authority, request, verifier.opened)
    except Refused:
        (folder / "joining.json").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it has other files
            folder.rmdir()
        raise
    ca_file = str(folder.absolute() / "ca.pem") if authority else ""
    if authority:
        replace_file(folder / "ca.pem", authority.encode())
    address = NatsAddress(
        (line.server,), f"worker-{name}", password, line.space, bool(authority), ca_file,
        tls_name=TLS_NAME if authority else "",
    )  # fmt: skip
    login = WorkerLogin(name, address, line.owner_key, answer.pools, given.is_own)
    replace_file(folder / "login.json", msgspec.json.encode(login), durable=True)
    (folder / "joining.json").unlink(missing_ok=True)
    return login


def _password(folder: Path, line: str) -> str:
    """The one that was sent with this line before, if that was interrupted: the owner knows it then."""
    path = folder / "joining.json"
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        begun = msgspec.json.decode(path.read_bytes(), type=_Joining)
        if begun.line == line:
            return begun.password
    password = secrets.token_urlsafe(32)
    replace_file(path, msgspec.json.encode(_Joining(line, password)), durable=True)
    return password
