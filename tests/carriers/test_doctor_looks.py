"""`meantime doctor` at owner and worker: a bad carrier or login is found, and the row says what to do."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.faults.workers.brokers import is_listening
from tests.waiting import until

from meantime.app.config_schema import WorkerSection
from meantime.app.doctor import BAD, OK, WARN, CheckRow, worker_checks
from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.private_server import free_port
from meantime.carriers.nats.server_config import ServerLogin, server_config
from meantime.carriers.nats.server_probe import LEAST_PAYLOAD
from meantime.workers.owner_key import Signer

from .postgres_server import PostgresServer

HOST, PASSWORD = "127.0.0.1", "of-the-tests"
TODO = "Start it."


@contextmanager
def nats(folder: Path, **changed: Any) -> Iterator[int]:
    """A server with the login of a worker, w1; `changed` settings differ from ours. Its port."""
    port = free_port(HOST)
    given = server_config(
        host=HOST, port=port, folder=str(folder), name="s", space="meantime", owner=ServerLogin(PASSWORD),
        workers={"w1": ServerLogin(PASSWORD, ("default",))}, lines={}, tls=None,
    )  # fmt: skip
    config = msgspec.json.decode(given) | changed
    (folder / "nats.conf").write_bytes(msgspec.json.encode(config))
    program = Path(sysconfig.get_path("scripts")) / "nats-server"
    with (folder / "start.log").open("wb") as log:
        server = subprocess.Popen([program, "-c", folder / "nats.conf"], stdout=log, stderr=log)
    try:
        until(lambda: is_listening(port), "NATS listens")
        yield port
    finally:
        server.kill()
        server.wait()


def address(port: int, user: str = "worker-w1", **more: Any) -> NatsAddress:
    return NatsAddress((f"{HOST}:{port}",), user, PASSWORD, **more)


def found(address: NatsAddress, worker: str = "") -> list[CheckRow]:
    return list(worker_checks._server("worker", address, TODO, worker))


def test_a_login_that_can_do_no_more_than_it_should_is_well(tmp_path: Path):
    with nats(tmp_path) as port:
        rows = found(address(port), "w1")
    assert [(row.name, row.level) for row in rows] == [("worker", OK), ("login", OK)]


@pytest.mark.servers
def test_a_login_that_can_do_more_than_a_worker_should_is_found(tmp_path: Path):
    """The owner's login, given to a worker."""
    with nats(tmp_path) as port:
        _, row = found(address(port, "owner"), "w1")
    assert (row.name, row.level) == ("login", BAD)
    assert "may publish meantime." in row.found
    assert "meantime workers add" in row.todo


def test_a_server_that_takes_only_small_messages_is_found(tmp_path: Path):
    with nats(tmp_path, max_payload=65_536) as port:
        row, _ = found(address(port))
    assert row.level == BAD
    assert "65,536" in row.found
    assert str(LEAST_PAYLOAD) in row.todo


def test_a_server_that_is_reached_in_the_clear_is_warned_of(tmp_path: Path):
    with nats(tmp_path) as port:
        (row,) = found(address(port, is_clear=True))
    assert (row.level, "in the clear" in row.found) == (WARN, True)
    assert "tls://" in row.todo


def test_a_server_that_is_gone_or_refuses_the_login_is_found(tmp_path: Path):
    with nats(tmp_path) as port:
        (refused,) = found(NatsAddress((f"{HOST}:{port}",), "worker-w1", "another"))
    (gone,) = found(address(port))
    for row in (refused, gone):
        assert (row.level, row.todo) == (BAD, TODO)


@pytest.mark.parametrize(("skew", "way"), [(3_600.0, "3600 s ahead of"), (-3_600.0, "3600 s behind")])
def test_a_clock_that_is_off_is_named_with_its_worker(skew: float, way: str):
    (row,) = worker_checks._clocks([{"name": "w1", "skew": skew}, {"name": "w2", "skew": 0.3}])
    assert row.level == WARN
    assert "w1" in row.found
    assert way in row.found


def test_an_owner_whose_key_is_not_pinned_is_found(tmp_path: Path):
    with nats(tmp_path) as port:
        carrier = f"nats://worker-w1:{PASSWORD}@{HOST}:{port}/meantime"
        unpinned = list(worker_checks._configured(WorkerSection(carrier=carrier, name="w1")))
        wrong = list(worker_checks._configured(WorkerSection(carrier=carrier, name="w1", owner_key="x")))
    assert [row.level for row in unpinned] == [BAD, OK, OK]
    assert "not pinned" in unpinned[0].found
    assert [row.level for row in wrong] == [BAD, OK, OK]


def test_a_key_that_is_pinned_is_well():
    (row,) = worker_checks._key("[worker] owner_key", Signer.load(None).public)
    assert row.level == OK


def test_a_worker_with_a_superusers_login_to_postgresql_is_found(postgres: PostgresServer):
    (row,) = worker_checks._database("worker", postgres.url(), is_worker=True)
    assert (row.level, "every worker" in row.found) == (BAD, True)
    (row,) = worker_checks._database("carrier", postgres.url(), is_worker=False)
    assert (row.level, "superuser" in row.found) == (WARN, True)


def test_a_database_that_is_gone_is_found():
    (row,) = worker_checks._database("worker", f"postgres://w@{HOST}:{free_port(HOST)}/x", is_worker=True)
    assert row.level == BAD
    assert "[worker] carrier" in row.todo
