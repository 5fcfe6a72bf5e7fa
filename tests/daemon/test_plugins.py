"""[plugins] in the daemon's configuration: what a registry has that is connected to it, and given nothing."""

from __future__ import annotations

from meantime.blocking import Meantime
from meantime.plugins import BackgroundConfig, PluginRegistry

from .conftest import Place

CONFIG = """
[http]
port = 0
[plugins]
max_concurrent_tasks = 3
default_timeout_seconds = 12.5
"""


def test_M1_a_registry_has_the_daemons_config(place: Place) -> None:
    place.configure(CONFIG)
    place.up()
    with Meantime.connect(place.home.link_socket, start=False) as mt:
        config = PluginRegistry(mt, "conv-1").config
        assert (config.max_concurrent_tasks, config.default_timeout_seconds) == (3, 12.5)
        assert config.background_threshold_seconds == BackgroundConfig().background_threshold_seconds
        own = BackgroundConfig(max_concurrent_tasks=1)
        assert PluginRegistry(mt, "conv-2", own).config is own


def test_a_meantime_of_ones_own_has_its_settings() -> None:
    with Meantime.open(":memory:") as mt:
        assert PluginRegistry(mt, "conv-1").config == BackgroundConfig()
