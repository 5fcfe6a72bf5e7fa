"""A client that was made without us, fastmcp with fastmcp-tasks, in an environment of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from daemon.conftest import Place
from integrations.mcp import foreign, peers
from meantime import Meantime

from . import asker
from .conftest import QUICK
from .speaking import COMMAND

pytestmark = [pytest.mark.anyio, foreign.needed, pytest.mark.servers]
CLIENT = str(Path(peers.__file__).with_name("foreign_client.py"))


@pytest.fixture(params=["stdio", "http"])
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def served(
    wire: str, place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[dict[str, Any]]:
    """`meantime mcp` in front of a daemon, or the door of an owner."""
    if wire == "stdio":
        monkeypatch.setenv("PYTHONPATH", str(Path(asker.__file__).parent))
        place.configure('[http]\nport = 0\n[agents.asker]\nrunner = "python"\nagent = "asker:colour"\n')
        yield {"command": [*COMMAND, "--thread", "foreign"], "environ": place.environ}
        return
    agents = {"asker": asker.colour}
    async with (
        Meantime.open(folder / "work.db", settings=QUICK, agents=agents) as mt,
        mt.serve(port=0) as door,
    ):
        yield {"url": f"{door.url}/mcp", "token": door.thread_token("foreign")}


async def did(**order: Any) -> dict[str, Any]:
    client = await asyncio.create_subprocess_exec(
        foreign.PYTHON, CLIENT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(2 * LIMIT):
        said, _ = await client.communicate(json.dumps(order).encode())
    assert client.returncode == 0
    return json.loads(said)


async def test_it_calls_follows_cancels_and_answers(
    wire: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with served(wire, place, tmp_path, monkeypatch) as server:
        saw = await did(
            server=server,
            calls=[["start", {"command": "echo from a stranger"}], ["start", {"command": "exit 3"}]],
            cancelled=["start", {"command": "sleep 600"}],
            asked=["start_agent", {"agent": "asker", "prompt": "choose"}],
            answer="green",
            last=["list", {"status": "all"}],
        )
    assert "start" in saw["tools"]
    done, failed = saw["calls"]
    assert done == {"error": False, "texts": ["from a stranger\n"]}
    assert failed["error"]
    assert "exit code 3" in failed["texts"][0]
    assert saw["states"] == ["working", "cancelled", "input_required"]
    assert saw["questions"] == ["Which colour?"]
    assert saw["asked"] == {"error": False, "texts": ["It is green."]}
    (listed,) = saw["last"]["texts"]  # one block: it was told of all of them by asking
    assert listed.count("\n") == 3
