"""[plugins] in the daemon's configuration: what a registry has that is connected to it, and given nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from meantime import Meantime as AsyncMeantime
from meantime.app.connected_catalog import ConnectedWorks
from meantime.blocking import Meantime
from meantime.plugins import BackgroundConfig, PluginRegistry
from meantime.toolset.toolset import Toolset
from runtimes import client_of

from .conftest import Place

pytestmark = pytest.mark.processes

CONFIG = """
[http]
port = 0
[plugins]
max_concurrent_tasks = 3
default_timeout_seconds = 1200.5
"""


@pytest.mark.behaviour("M1")
def test_a_registry_has_the_daemons_config(place: Place) -> None:
    place.configure(CONFIG)
    place.up()
    with Meantime.connect(place.home.link_socket, start=False) as mt:
        config = PluginRegistry(mt, "conv-1").config
        assert (config.max_concurrent_tasks, config.default_timeout_seconds) == (3, 1200.5)
        assert config.background_threshold_seconds == BackgroundConfig().background_threshold_seconds
        own = BackgroundConfig(max_concurrent_tasks=1)
        assert PluginRegistry(mt, "conv-2", own).config is own


@pytest.mark.behaviour("M1")
@pytest.mark.anyio
async def test_the_jaato_dialect_has_the_daemons_config_and_its_servers(place: Place, tmp_path: Path) -> None:
    peer = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"
    server = f'[mcp.servers.wiki]\ncommand = ["{sys.executable}", "{peer}", "well", "{tmp_path}"]\n'
    place.configure(f"{CONFIG}background_threshold_seconds = 0.05\n{server}")
    place.up()
    async with AsyncMeantime.connect(place.home.link_socket, start=False) as mt:
        thread = mt.thread("conv-1")
        client = client_of(mt)
        toolset = Toolset(client, ConnectedWorks(client), thread.id, "jaato")
        listed = (await toolset.call("listBackgroundCapableTools")).data["tools"]
        assert {"plugin_name": "wiki", "tool_name": "add"} in listed
        assert ">0.05 seconds" in await toolset.guidance()
        slow = (await toolset.call("runCommand", {"command": "sleep 3600"})).data
        assert (slow["auto_backgrounded"], slow["threshold_seconds"]) == (True, 0.05)
        assert (await thread.get(slow["task_id"])).run.timeout == pytest.approx(1200.5 + 0.05)
        order = {"plugin_name": "cli", "tool_name": "runCommand", "arguments": {"command": "sleep 3600"}}
        started = [(await toolset.call("startBackgroundTask", order)).data["success"] for _ in range(3)]
        assert started == [True, True, False], "three at most, as [plugins] says"
        await thread.cancel_all()


def test_a_meantime_of_ones_own_has_its_settings() -> None:
    with Meantime.open(":memory:") as mt:
        assert PluginRegistry(mt, "conv-1").config == BackgroundConfig()
