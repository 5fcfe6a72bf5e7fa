"""A host over HTTP that asks for nothing has left. Here that takes half a second, and not ten minutes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.conftest import Place, eventually

from .conftest import SOON, Peer, lives
from .test_http_hosts import UrlHost, status_of

SHORT = "from meantime.surfaces.wrap import http_host\nhttp_host.IDLE = 0.5\n"


def test_a_session_without_requests_ends_and_its_server_when_no_call_runs(
    place: Place, peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "short_idle.py").write_text(SHORT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place.configure(
        f'tools = ["short_idle"]\n[http]\nport = 0\n[mcp]\nwrap_threshold = {SOON}\n'
        f"[mcp.servers.scripted]\ncommand = {json.dumps(peer.command('taskless'))}\n"
    )
    place.up()
    host = UrlHost(place, "scripted", thread="idle").begin()
    task = host.call("gate", mark="slow")["result"]["_meta"]["meantime/task"]
    later = UrlHost(place, "scripted").begin()
    assert later.call("echo")["result"]["content"]
    server, other = peer.pids
    eventually(lambda: not lives(other), "a server ends with its session; that of the first ended before")
    assert status_of(host.post("tools/list")) == (404, "no_session")
    assert lives(server), "its call runs"
    peer.open_gate()
    assert place.ask("GET", f"/v1/tasks/{task}/wait?timeout=30")["state"] == "completed"
    eventually(lambda: not lives(server), "the server ends with its last call")
