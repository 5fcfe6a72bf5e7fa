"""A login that a NATS server refuses: in its own words, or by a reset that takes them away."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from pathlib import Path

import pytest
from tests.refusing import RefusingServer, refusing
from tests.waiting import LIMIT, pause_async, until_async

from meantime.carriers.ends import carrier_end
from meantime.carriers.nats import join_request
from meantime.carriers.nats.join_line import JoinLine
from meantime.carriers.nats.join_request import JoinRequest, request_login
from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.nats_client import LoginRefused, NatsClient, close, log_in
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.server_accounts import AccountFiles, PrivateServerRecord, new_login
from meantime.carriers.nats.server_probe import look_at_server
from meantime.kernel.errors import Refused

from .nats_site import NatsSite, nats_site

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
INFO = b'INFO {"server_id":"s","version":"2.15.1","max_payload":1048576,"auth_required":true}\r\n'
VIOLATION = b"-ERR 'Authorization Violation'\r\n"


@pytest.fixture(params=[INFO, INFO + VIOLATION], ids=["without a word", "in its own words"])
def refusal(request: pytest.FixtureRequest) -> bytes:
    return request.param


async def logged_in(address: NatsAddress, patience: float, tls: ssl.SSLContext | None = None) -> NatsClient:
    async def ignore(*_: object) -> None: ...

    return await log_in(
        address.servers[0], user=address.user, password=address.password, tls=tls, tls_name=address.tls_name,
        failed=ignore, closed=ignore, patience=patience,
    )  # fmt: skip


def address_of(server: RefusingServer) -> NatsAddress:
    return NatsAddress((server.address,), "worker-w1", "p" * 43)


async def test_a_login_that_stays_refused_is_refused(refusal: bytes):
    with refusing(refusal) as server:
        with pytest.raises(LoginRefused):
            await logged_in(address_of(server), patience=0.3)
        assert server.refused > 1, "it was tried again"


async def test_a_connection_that_ends_before_the_login_is_answered_is_a_refusal():
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        await reader.readuntil(b"PING\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LoginRefused, match="the connection was closed"):
            await logged_in(NatsAddress((f"127.0.0.1:{port}",), "w", "p"), patience=0.0)


async def test_a_worker_says_which_login_is_refused_and_what_to_do(
    refusal: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(carrier_end, "OPEN_WAIT", 0.0)
    with refusing(refusal) as server:
        worker = NatsWorker(address_of(server), "w1")
        await worker.open(lambda data: None, lambda state: None)
        try:
            said = "The server refuses the login worker-w1 ("
            await until_async(lambda: said in worker.state.reason, "it says why", lambda: worker.state)
            assert "Join again with a new line" in worker.state.reason
        finally:
            await worker.close()


async def test_a_join_line_that_is_refused_says_what_to_do(refusal: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(join_request, "NEW_LINE_WAIT", 0.3)
    with refusing(refusal) as server:
        line = JoinLine(server.address, "meantime", b"", "k" * 43, "1" * 16, "p" * 32, 0)
        request = JoinRequest(name="w1", pool="default", password="p" * 43)
        with pytest.raises(Refused, match="does not know this join line, or has revoked it") as refused:
            await request_login(line, "", request, lambda signed: None)
    assert "meantime workers join-line" in refused.value.hint


async def test_the_doctor_says_that_it_is_refused(refusal: bytes):
    with refusing(refusal) as server:
        look = await look_at_server(address_of(server))
    assert look.problem


async def test_a_server_without_tls_is_not_told_the_password():
    """The server says whether to encrypt, in the clear: so could somebody in between."""
    told: list[bytes] = []

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        told.append(await reader.read())
        writer.close()

    async with await asyncio.start_server(pretend, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        address = NatsAddress((f"127.0.0.1:{port}",), "worker-w1", "secret", tls_name="meantime")
        with pytest.raises(ConnectionError, match="does not offer TLS"):
            await logged_in(address, patience=0.0, tls=ssl.create_default_context())
        await until_async(lambda: told, "the connection has ended")
    assert told == [b""]


async def test_a_good_login_outlasts_a_server_that_reads_its_accounts_again(tmp_path: Path):
    """It cuts off everybody who is about to log in."""
    async with nats_site(tmp_path / "nats") as site:
        reloading = asyncio.create_task(reload_without_end(site))
        try:
            address = site.server.worker_address("w1")
            for _ in range(20):
                clients = await asyncio.gather(*(logged_in(address, patience=LIMIT) for _ in range(4)))
                for client in clients:
                    await close(client)
        finally:
            reloading.cancel()


async def reload_without_end(site: NatsSite) -> None:
    running = site.server.process
    assert running is not None
    while running.is_alive:
        os.kill(running.pid, signal.SIGHUP)
        await pause_async(0.01, "a reload takes a moment")


def test_a_server_reads_its_accounts_again_only_if_they_changed(tmp_path: Path):
    files = AccountFiles(tmp_path / "nats")
    with files.change(PrivateServerRecord(4222, new_login(), {})):
        pass
    config = files.folder / "nats.conf"
    before = config.stat().st_ino
    with files.change() as record:
        record.add_worker("w1", ("default",))
    changed = config.stat().st_ino
    assert changed != before
    with files.change() as record:
        record.add_worker("w1", ("default",))
    assert config.stat().st_ino == changed
