"""A host over HTTP that asks for nothing has left. Here that takes half a second instead of ten minutes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.waiting import until

from daemon.conftest import Place

from .conftest import NEVER_SOON, SOON, Peer, lives
from .test_http_hosts import UrlHost, status_of

pytestmark = pytest.mark.breadth

SHORT = """
import pathlib, threading
from meantime.surfaces.wrap import http_host

def shorten():
    here = pathlib.Path(__file__).parent
    (here / "gate").read_text()  # a FIFO: until the test opens its other end
    http_host.IDLE = 0.5
    (here / "is_short").touch()

threading.Thread(target=shorten, daemon=True).start()
"""


def test_a_session_without_requests_ends_and_its_server_when_no_call_runs(
    place: Place, peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "short_idle.py").write_text(SHORT)
    os.mkfifo(tmp_path / "gate")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place.configure(
        'tools = ["short_idle"]\n[http]\nport = 0\n'
        f'[mcp]\nwrap_threshold = {NEVER_SOON}\nwrap_thresholds = {{ "scripted/gate" = {SOON} }}\n'
        f"[mcp.servers.scripted]\ncommand = {json.dumps(peer.command('taskless'))}\n"
    )
    place.up()
    host = UrlHost(place, "scripted", thread="idle").begin()
    task = host.call("gate", mark="slow")["result"]["_meta"]["meantime/task"]
    later = UrlHost(place, "scripted").begin()
    assert later.call("echo")["result"]["content"]
    server, other = peer.pids
    (tmp_path / "gate").write_text("")
    until((tmp_path / "is_short").exists, "hosts count as gone after half a second")
    for one in (host, later):
        assert one.ask("tools/list")["result"]["tools"]
    until(lambda: not lives(other), "a server ends with its session; that of the first ended before")
    assert status_of(host.post("tools/list")) == (404, "no_session")
    assert lives(server), "its call runs"
    peer.open_gate()
    assert place.wait(task)["state"] == "completed"
    until(lambda: not lives(server), "the server ends with its last call")
