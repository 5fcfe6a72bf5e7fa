"""Servers over HTTP share the certificates of their process."""

from __future__ import annotations

import ssl
from typing import Any

import httpx2
import pytest

from meantime.integrations.mcp.servers import HttpServer
from meantime.integrations.mcp.wire.http_transport import http_wire
from meantime.integrations.mcp.wire.raw_http import RawHttp
from meantime.integrations.mcp.wire.tls_context import tls_context

pytestmark = pytest.mark.anyio
SERVER = HttpServer(url="https://127.0.0.1:1/mcp")


async def test_no_session_loads_certificates_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """It takes 40 ms, in which the event loop does nothing else, and 1 MB."""
    assert tls_context().verify_mode == ssl.CERT_REQUIRED
    assert tls_context().check_hostname

    def loaded(*_: object, **__: object) -> ssl.SSLContext:
        raise AssertionError("they are loaded again")

    monkeypatch.setattr(ssl, "create_default_context", loaded)
    with pytest.raises(AssertionError):
        httpx2.AsyncClient()  # as a session would without the shared ones
    nobody: Any = None  # nothing is said to it: nothing is sent
    await RawHttp("one", SERVER, nobody).close()
    async with http_wire(SERVER):
        pass
