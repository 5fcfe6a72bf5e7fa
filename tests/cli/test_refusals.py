"""A daemon that refuses a request before it has read it: people see the refusal, not that it went away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.refusing import http_refusal, refusing

from meantime.daemon.home import Home
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import DaemonGone, DaemonRefused

TOO_BIG = {"error": "A body has at most 1000000 bytes.", "code": "body_too_big", "hint": "Send less."}
FULL = {"error": "512 connections are open already.", "code": "too_many_connections", "hint": "Close some."}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path / "config.toml")


def test_a_body_that_is_refused_while_it_is_sent_says_why(home: Home):
    refusal = http_refusal("413 Content Too Large", json.dumps(TOO_BIG).encode())
    daemon = Daemon(home, start=False)
    with (
        refusing(refusal, path=home.http_socket, reads=1_000),
        pytest.raises(DaemonRefused, match="at most 1000000 bytes") as refused,
    ):
        daemon.post("/v1/tasks", {"command": "x" * 8_000_000})
    assert (refused.value.status, refused.value.code) == (413, "body_too_big")


def test_a_connection_that_is_one_too_many_says_so(home: Home):
    refusal = http_refusal("503 Service Unavailable", json.dumps(FULL).encode())
    with refusing(refusal, path=home.http_socket) as server:
        daemon = Daemon(home, start=False)
        line = daemon._connected(10.0)
        server.wait()  # it has answered before it was asked
        daemon._line = line
        with pytest.raises(DaemonRefused, match="512 connections are open already"):
            daemon._request("GET", "/v1/tasks", None, 10.0)


def test_a_connection_that_is_cut_without_a_word_is_a_daemon_that_went_away(home: Home):
    daemon = Daemon(home, start=False)
    with refusing(b"", path=home.http_socket), pytest.raises(DaemonGone, match="went away"):
        daemon.post("/v1/tasks", {"command": "x" * 8_000_000})
