"""A server over HTTP that refuses a large request before it has read it, and closes the connection."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.refusing import RefusingServer, http_refusal, refusing
from tests.waiting import until_async

from meantime.carriers.nats.tls_certificates import CarrierCertificates, make_certificates
from meantime.integrations.early_answers import read_early_answers
from meantime.integrations.mcp.servers import HttpServer
from meantime.integrations.mcp.wire.http_transport import Contained
from meantime.integrations.mcp.wire.raw_http import RawHttp
from meantime.integrations.opencode.errors import Away, Denied
from meantime.integrations.opencode.wire.api_client import ApiClient
from meantime.ports.wrapped_server import LoginChallenge

pytestmark = pytest.mark.anyio
TEXT = "x" * 8_000_000
REQUEST = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"text": TEXT}}


@contextmanager
def refusal(status: str, tls: ssl.SSLContext | None = None) -> Iterator[RefusingServer]:
    with refusing(http_refusal(status, b'{"error":"no"}'), reads=1_000, tls=tls) as server:
        yield server


class End:
    """The host's end of a server that is wrapped."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def on_line(self, line: bytes) -> None:
        self.said.append(("error", msgspec.json.decode(line)["error"]["message"]))

    def on_challenge(self, id: object, challenge: LoginChallenge, why: str) -> None:
        self.said.append(("login", id, challenge.status))

    def on_unanswered(self, id: object, why: str) -> None:
        self.said.append(("unanswered", why))


async def said_by_wrapped(url: str) -> tuple[Any, ...]:
    end = End()
    server = RawHttp("s", HttpServer(url=url), end)  # type: ignore[arg-type]
    try:
        server.send(msgspec.json.encode(REQUEST))
        return (await until_async(lambda: end.said, "the request is answered"))[0]
    finally:
        await server.close()


async def test_a_wrapped_server_asks_for_its_login():
    with refusal("401 Unauthorized") as server:
        assert await said_by_wrapped(f"http://{server.address}/mcp") == ("login", 7, 401)


async def test_a_wrapped_server_says_that_it_is_too_large():
    with refusal("413 Content Too Large") as server:
        kind, text = await said_by_wrapped(f"http://{server.address}/mcp")
    assert (kind, text) == ("error", 'The server answered with HTTP 413. {"error":"no"}')


async def test_a_server_of_ours_says_that_it_is_too_large():
    inner = httpx2.AsyncHTTPTransport()
    read_early_answers(inner)
    with refusal("413 Content Too Large") as server:
        async with httpx2.AsyncClient(transport=Contained(inner)) as client:
            answer = await client.post(f"http://{server.address}/mcp", json=REQUEST)
    assert (answer.json()["id"], "HTTP 413" in answer.json()["error"]["message"]) == (7, True)


@pytest.fixture
def certificates(tmp_path: Path) -> CarrierCertificates:
    return make_certificates(tmp_path, ["127.0.0.1"], datetime.now(UTC))


async def test_it_is_read_over_tls(certificates: CarrierCertificates):
    assert certificates.server is not None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server.certificate, certificates.server.key)
    ours = ssl.create_default_context(cafile=certificates.ca_file)
    with refusal("429 Too Many Requests", tls) as server:
        async with httpx2.AsyncClient(verify=ours) as client:
            read_early_answers(client)
            answer = await client.post(f"https://{server.address}/mcp", content=TEXT.encode())
    assert (answer.status_code, answer.json()) == (429, {"error": "no"})


async def test_opencode_says_why_it_refuses_a_prompt():
    with refusal("413 Content Too Large") as server:
        client = ApiClient(f"http://{server.address}")
        try:
            with pytest.raises(Denied, match=r"\(413\): \{\"error\":\"no\"\}"):
                await client.prompt("ses_1", "/", {"parts": [{"type": "text", "text": TEXT}]})
        finally:
            await client.close()


async def test_a_server_that_closes_without_a_word_was_lost():
    with refusing(b"", reads=1_000) as server:
        client = ApiClient(f"http://{server.address}")
        try:
            with pytest.raises(Away):
                await client.prompt("ses_1", "/", {"parts": [{"type": "text", "text": TEXT}]})
        finally:
            await client.close()
        kind, text = await said_by_wrapped(f"http://{server.address}/mcp")
    assert (kind, "was cut off" in text) == ("unanswered", True)
