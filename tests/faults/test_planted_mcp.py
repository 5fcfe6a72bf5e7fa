"""The families of MCP can fail: what they expect is really looked at."""

from __future__ import annotations

import pytest

from . import mcp_clients, mcp_servers

pytestmark = pytest.mark.faults


def test_a_wrong_answer_of_a_server_is_noticed(monkeypatch: pytest.MonkeyPatch):
    twice = mcp_servers.FAULTS["answers twice"]._replace(says="second")
    monkeypatch.setattr(mcp_servers, "FAULTS", {"answers twice": twice})
    tally = mcp_servers.run(1, 0, "")
    assert tally.lost == 2, tally.problems


def test_an_open_gate_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def anybody(scene: mcp_clients.Scene, thread: str) -> None:
        mcp_clients.at_the_gate(scene, thread, ({}, 401))

    monkeypatch.setattr(mcp_clients, "FAULTS", {"anybody": anybody})
    tally = mcp_clients.run(1, 0, "")
    assert "anybody: AssertionError" in "".join(tally.problems)
