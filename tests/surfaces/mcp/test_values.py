"""Small parts: the pipe, the thread, the shape of a task."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from meantime import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.surfaces.caller.caller_thread import named
from meantime.surfaces.mcp import mcp_tasks
from meantime.surfaces.mcp.client_thread import own_thread
from meantime.surfaces.mcp.pipes import Out, _writer

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what was read")
@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_we_know_what_the_client_has_taken(kind: str):
    if kind == "pipe":
        reads, writes = os.pipe()
    else:
        pair = socket.socketpair()
        reads, writes = (one.detach() for one in pair)
    out = Out(writes, await _writer(writes))
    try:
        assert out.is_taken()
        await out.write(b"an answer\n")
        assert out.is_taken() is False
        os.read(reads, 4)
        assert out.is_taken() is False
        os.read(reads, 100)
        assert out.is_taken()
    finally:
        os.close(reads)
        os.close(writes)


def test_whose_conversation_it_is():
    assert own_thread("given", {"MEANTIME_THREAD": "env"}) == "given"
    assert own_thread(None, {"MEANTIME_THREAD": "env", "CLAUDE_CODE_SESSION_ID": "s"}) == "env"
    assert own_thread(None, {"CLAUDE_CODE_SESSION_ID": "5f0c/a b"}) == "mcp-5f0c-a-b"
    assert own_thread(None, {}) == own_thread(None, {})
    with pytest.raises(InvalidInput, match="not a valid id"):
        own_thread("no spaces")
    assert named("Claude Code™") == "Claude-Code"
    assert named("…") == "mcp"


def test_an_agent_that_starts_us_again_finds_its_inbox_again(tmp_path: object):
    """Also through a shell; from another folder it is another conversation."""
    code = "from meantime.surfaces.mcp.client_thread import own_thread; print(own_thread(None, {}))"
    command = [sys.executable, "-c", code]

    def run(arguments: list[str], **given: object) -> str:
        return subprocess.run(arguments, capture_output=True, text=True, check=True, **given).stdout.strip()  # type: ignore[call-overload]

    direct = run(command)
    assert direct == run(command)
    assert direct == run(["sh", "-c", f"{sys.executable} -c '{code}'; true"])
    assert direct != run(command, cwd=tmp_path)
    assert direct.startswith("mcp-")


def test_every_status_has_its_word():
    assert set(mcp_tasks._STATUS) == set(mcp_tasks._STATUS_2025) == set(Status)
    assert set(mcp_tasks._STATUS_2025.values()) <= {
        "working",
        "input_required",
        "completed",
        "failed",
        "cancelled",
    }


def test_ids_at_this_door_cannot_be_guessed():
    made = {mcp_tasks.new_id() for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(len(id) - 2 >= 26 for id in made)  # five bits each: 128 and more
