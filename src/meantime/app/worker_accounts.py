"""Logins of workers at the owner's carrier: join lines, a list, one more, one less.

For the private server they are in its files, which the daemon reads as well; so the daemon need not be asked.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from meantime.carriers.nats.join_answers import EXPIRES, make_line
from meantime.carriers.nats.join_line import JoinLine
from meantime.carriers.nats.nats_address import read_address
from meantime.carriers.nats.nats_subjects import NatsSubjects
from meantime.carriers.nats.server_accounts import AccountFiles
from meantime.carriers.postgres.postgres_client import PostgresAddress, read_postgres_address
from meantime.carriers.postgres.worker_roles import add_worker, list_workers, remove_worker
from meantime.daemon.home import Home
from meantime.kernel.errors import Disconnected, InvalidInput, MeantimeError, NotFound
from meantime.ports.carrier import check_name
from meantime.surfaces.terminal.errors import CliError
from meantime.workers.owner_key import Signer

from .config_sources import load
from .local_owner import LOCAL
from .worker_addresses import key_path, pools_of_places

T = TypeVar("T")
_EXPLAIN = "Only the server of `--carrier local` has join lines. For yours: meantime workers add NAME"


def make_join_line(home: Home, pools: Sequence[str], address: str, expires: float | None) -> JoinLine:
    try:
        places = load(home).values.engine.place.values()
        wanted = tuple(pools) or pools_of_places(places)
        lasts = EXPIRES if expires is None else expires
        return make_line(_files(home, _EXPLAIN), wanted, address=address, expires=lasts)
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None


def list_logins(home: Home) -> list[dict[str, Any]]:
    """Name, pools and kind of each."""
    try:
        database = _database(home)
        if database is not None:
            found = _done(list_workers(database))
            return [{"name": name, "pools": pools, "kind": "role"} for name, pools in found]
        record = _files(home, "Its logins are in the configuration of the server.").read()
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None
    logins = {} if record is None else record.workers
    return [
        {"name": name, "pools": list(login.pools), "kind": "this machine" if login.is_own else "joined"}
        for name, login in sorted(logins.items())
    ]


def add_login(home: Home, name: str, pools: Sequence[str]) -> str:
    """A login at a server that is not ours: the text to write into its configuration and the worker's."""
    try:
        wanted = tuple(pools) or ("default",)
        url = load(home).values.engine.carrier
        if url in ("", LOCAL):
            raise InvalidInput(
                "Workers join the server of `--carrier local` by themselves.",
                hint="Print a line for one: meantime workers join-line",
            )
        database = _database(home)
        if database is not None:
            role = _done(add_worker(database, name, wanted))
            carrier = role.url if role.space == "meantime" else f"{role.url}?space={role.space}"
            return _section(home, carrier, name, wanted)
        address = read_address(url)
        password = secrets.token_urlsafe(32)
        allowed = NatsSubjects(address.space).permissions(name, wanted)
        user = {"user": f"worker-{name}", "password": password, "permissions": allowed}
        carrier = replace(address, user=f"worker-{name}", password=password).url()
        line = msgspec.json.encode(user).decode()
        return (
            "# A user for nats-server.conf; then: nats-server --signal reload\n"
            f"{line}\n\n{_section(home, carrier, name, wanted)}"
        )
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None


def revoke_login(home: Home, name: str) -> str:
    try:
        check_name("worker", name)
        database = _database(home)
        if database is not None:
            if name not in dict(_done(list_workers(database))):
                raise _unknown(name)
            _done(remove_worker(database, name))
        else:
            with _files(
                home, f"Remove user worker-{name} from the configuration of the server."
            ).change() as record:
                if record.workers.pop(name, None) is None:
                    raise _unknown(name)
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None
    return f"revoked {name}: it is disconnected, and its runs are lost after lease + grace"


def _unknown(name: str) -> NotFound:
    return NotFound(f"No worker {name!r} has a login.", hint="meantime workers logins")


def _files(home: Home, hint: str) -> AccountFiles:
    """The files of the private server, which `up --carrier local` makes without the configuration."""
    url = load(home).values.engine.carrier
    if url not in ("", LOCAL):
        raise InvalidInput(f"The carrier is a server of your own ({url.partition('://')[0]}).", hint=hint)
    return AccountFiles(home.folder / "nats")


def _database(home: Home) -> PostgresAddress | None:
    url = load(home).values.engine.carrier
    return read_postgres_address(url) if url.startswith("postgres") else None


def _done(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except MeantimeError:
        raise
    except Exception as problem:  # of the database, or on the way there
        raise Disconnected(
            f"The database did not do it: {problem or type(problem).__name__}.",
            hint="The owner's role needs CREATEROLE, and CREATE on the database.",
        ) from None


def _section(home: Home, carrier: str, name: str, pools: Sequence[str]) -> str:
    key = Signer.load(key_path(home.ledger)).public
    lines = [
        "# The worker's configuration; it holds a password: chmod 600",
        "[worker]",
        f'carrier = "{carrier}"',
        f'name = "{name}"',
        f'owner_key = "{key}"',
        f'pool = "{pools[0]}"',
    ]
    return "\n".join(lines)
