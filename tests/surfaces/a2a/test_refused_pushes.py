"""A webhook that refuses a notification before it has read it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.refusing import http_refusal, refusing

from meantime.carriers.nats.tls_certificates import make_certificates
from meantime.surfaces.a2a.message_params import PushConfig
from meantime.surfaces.a2a.push_sender import post

REFUSAL = http_refusal("413 Content Too Large", b'{"error": "too large"}')
BODY = b"x" * 8_000_000


def test_its_status_is_read_although_the_body_was_not():
    with refusing(REFUSAL, reads=1_000) as server:
        assert post(PushConfig(url=f"http://{server.address}/hook"), BODY) == 413


def test_its_status_is_read_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = make_certificates(tmp_path, ["127.0.0.1"], datetime.now(UTC))
    assert made.server is not None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server.certificate, made.server.key)
    monkeypatch.setenv("SSL_CERT_FILE", made.ca_file)
    with refusing(REFUSAL, reads=1_000, tls=tls) as server:
        assert post(PushConfig(url=f"https://{server.address}/hook"), BODY) == 413


def test_a_webhook_that_says_nothing_is_an_error():
    with refusing(b"", reads=1_000) as server, pytest.raises(OSError, match=r"closed|reset"):
        post(PushConfig(url=f"http://{server.address}/hook"), BODY)
