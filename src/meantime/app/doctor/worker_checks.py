"""Workers: the carrier of the daemon, and this machine as a worker of another."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from meantime.app.config_schema import Config, WorkerSection
from meantime.app.config_sources import load
from meantime.app.local_owner import LOCAL
from meantime.app.worker_logins import WorkerLogin, stored_logins, worker_folder
from meantime.carriers.nats.nats_address import NatsAddress, read_address
from meantime.carriers.nats.server_accounts import AccountFiles, AccountRecord
from meantime.carriers.nats.server_probe import LEAST_PAYLOAD, ServerLook, look_at_server
from meantime.carriers.nats.tls_certificates import valid_until
from meantime.carriers.postgres.database_probe import look_at_database
from meantime.carriers.postgres.postgres_client import read_postgres_address
from meantime.daemon.daemon_autostart import answers
from meantime.daemon.home import Home
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.terminal_text import plain
from meantime.workers.owner_key import Verifier

from .check_row import BAD, OK, WARN, CheckRow, Patient
from .home_checks import is_there

SOON = 30  # days
SKEW = 5.0  # seconds between two clocks
MOST_LOGINS = 8
POSTGRES = "postgres"
FORBIDDEN = "Give it the permissions that `meantime workers add NAME` prints, or a login of its own."


def carrier(patient: Patient) -> Iterator[CheckRow]:
    """The owner's side: whether its server is up, encrypts, takes our messages, and limits its workers."""
    config = _config(patient)
    if config is None:
        return
    home, url = patient.home, config.engine.carrier
    info: dict[str, Any] = Daemon(home, start=False).get("/v1/info") if answers(home) else {}
    if not url and not info.get("ownerKey"):
        return
    if url.startswith(POSTGRES):
        yield from _database("carrier", url, is_worker=False)
    elif url in ("", LOCAL):
        yield from _private(home)
    else:
        yield from _server("carrier", read_address(url), "Start the server, or correct [engine] carrier.")
    yield from _clocks(info.get("workers", []))


def _private(home: Home) -> Iterator[CheckRow]:
    folder = home.folder / "nats"
    record = AccountFiles(folder).read()
    if record is None:
        yield CheckRow("carrier", OK, "local; its server starts with the daemon: meantime up")
        return
    todo = f"meantime down, then meantime up --carrier local. The server's log: {folder / 'nats.log'}"
    yield from _server("carrier", record.address("owner", record.owner), todo)
    yield from _certificate(record)
    name = next(iter(sorted(record.workers)), "")
    if name:
        look = asyncio.run(look_at_server(record.worker_address(name), name))
        yield from _permissions(name, look)


def _server(row: str, address: NatsAddress, todo: str, worker: str = "") -> Iterator[CheckRow]:
    look = asyncio.run(look_at_server(address, worker))
    where = plain(", ".join(address.servers))
    if look.problem:
        yield CheckRow(row, BAD, f"{where} is down, or refuses the login: {plain(look.problem)}", todo)
        return
    if look.max_payload < LEAST_PAYLOAD:
        found = f"{where} takes messages up to {look.max_payload:,} bytes; {LEAST_PAYLOAD:,} are needed"
        yield CheckRow(row, BAD, found, f"Set max_payload to {LEAST_PAYLOAD} in nats-server.conf.")
    how = "TLS" if address.is_secure else "in the clear" if address.is_clear else "on loopback"
    level, advice = (WARN, "Use tls:// in the carrier's address.") if address.is_clear else (OK, "")
    yield CheckRow(row, level, f"{where}, {how}; messages up to {look.max_payload:,} bytes", advice)
    if worker:
        yield from _permissions(worker, look)


def _permissions(name: str, look: ServerLook) -> Iterator[CheckRow]:
    if look.problem:
        return  # the row of the server says it
    if look.allowed:
        found = f"the login of worker {name} may {', '.join(look.allowed[:3])}"
        yield CheckRow("login", BAD, found, FORBIDDEN)
    else:
        yield CheckRow("login", OK, f"worker {name} can pull, acknowledge, speak and be told; no more")


def _certificate(record: AccountRecord) -> Iterator[CheckRow]:
    if record.tls is None:
        return
    until = min(valid_until(Path(record.tls.certificate)), valid_until(Path(record.ca_file)))
    days = (until - datetime.now(UTC)).days
    if days < SOON:
        todo = "meantime down, then meantime up: it makes a new one; workers stay as they are."
        yield CheckRow("tls", WARN, f"the certificate of the carrier is valid for {days} more days", todo)
    else:
        yield CheckRow("tls", OK, f"valid until {until:%Y-%m-%d}; authority {record.fingerprint[:16]}…")


def _clocks(workers: list[dict[str, object]]) -> Iterator[CheckRow]:
    for one in workers[:MOST_LOGINS]:
        skew = float(str(one.get("skew", 0.0)))
        if abs(skew) > SKEW:
            way = "ahead of" if skew > 0 else "behind"
            found = f"the clock of worker {plain(str(one['name']))} is {abs(skew):.0f} s {way} this machine's"
            yield CheckRow("clock", WARN, found, "Set both by NTP: its timestamps are off by that.")


def _database(row: str, url: str, *, is_worker: bool) -> Iterator[CheckRow]:
    look = asyncio.run(look_at_database(read_postgres_address(url)))
    if look.problem:
        section = "worker" if is_worker else "engine"
        todo = f"Start the database, or correct [{section}] carrier."
        yield CheckRow(row, BAD, f"PostgreSQL is down, or refuses the login: {plain(look.problem)}", todo)
        return
    if look.is_exposed:
        todo = "Add ?sslmode=verify-full&sslrootcert=FILE to the carrier's address."
        yield CheckRow(row, BAD, "PostgreSQL is reached over a network without TLS", todo)
    if is_worker and (look.is_powerful or look.reads_tables):
        found = "this login can read the messages of every worker"
        yield CheckRow(row, BAD, found, "Use the role that `meantime workers add NAME` makes at the owner.")
    elif look.is_powerful:
        todo = "Use a role with CREATEROLE, and CREATE on the database."
        yield CheckRow(row, WARN, "the owner's login is a superuser of PostgreSQL", todo)
    else:
        yield CheckRow(row, OK, "PostgreSQL answers")


# -- this machine as a worker


def worker(patient: Patient) -> Iterator[CheckRow]:
    config = _config(patient)
    if config is None:
        return
    given, home = config.worker, patient.home
    joined = [login for login in stored_logins(home) if not login.is_own][:MOST_LOGINS]
    if not given.carrier and not joined:
        return
    for module in given.tools:
        if not is_there(module):
            todo = f"Install it for {sys.executable}, or add its folder to the worker's PYTHONPATH."
            yield CheckRow("worker", BAD, f"[worker] tools: {module} is not there for this Python.", todo)
    if given.carrier:
        yield from _configured(given)
    for login in joined:
        yield from _joined(home, login)


def _configured(given: WorkerSection) -> Iterator[CheckRow]:
    yield from _key("[worker] owner_key", given.owner_key)
    if given.carrier.startswith(POSTGRES):
        yield from _database("worker", given.carrier, is_worker=True)
        return
    address = read_address(given.carrier)
    name = (given.name or address.user) if address.user else ""
    yield from _server("worker", address, "Start the server, or correct [worker] carrier.", name)


def _joined(home: Home, login: WorkerLogin) -> Iterator[CheckRow]:
    folder = worker_folder(home, login.name)
    yield from _key(f"worker {login.name}", login.owner_key)
    if not os.access(folder, os.W_OK):
        yield CheckRow("worker", BAD, f"{folder} cannot be written to.", f"chmod -R u+rwX {folder}")
    if stat.S_IMODE((folder / "login.json").stat().st_mode) & 0o077:
        found = f"others can read {folder / 'login.json'}, which holds a password"
        yield CheckRow("worker", BAD, found, f"chmod 600 {folder / 'login.json'}")
    todo = "Is the daemon up there? A revoked login needs a new line: `meantime workers join-line` there."
    yield from _server("worker", login.address, todo, login.name)


def _key(what: str, key: str) -> Iterator[CheckRow]:
    if not key:
        todo = "Set it to what `meantime workers` prints on the owner's machine."
        yield CheckRow("worker", BAD, f"{what}: the owner's key is not pinned", todo)
        return
    try:
        Verifier(key)
    except MeantimeError as problem:
        yield CheckRow("worker", BAD, f"{what}: {problem.message}", problem.hint)
    else:
        yield CheckRow("worker", OK, f"{what}: pinned to owner key {plain(key)[:12]}…")


def _config(patient: Patient) -> Config | None:
    try:
        return load(patient.home, patient.environ).values
    except MeantimeError:
        return None  # the row of the configuration says it
