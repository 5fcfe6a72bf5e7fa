"""One ledger, one conversation, one plugin with a gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT
from toolbox import SETTINGS, Files

from meantime.blocking import Meantime
from meantime.plugins import BackgroundConfig, PluginRegistry, ToolExecutor


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "work.db")


@pytest.fixture
def mt(ledger: str) -> Iterator[Meantime]:
    with Meantime.open(ledger, settings=SETTINGS) as mt:
        yield mt


@pytest.fixture
def config() -> BackgroundConfig:
    return BackgroundConfig(background_threshold_seconds=LIMIT)


@pytest.fixture
def registry(mt: Meantime, config: BackgroundConfig) -> PluginRegistry:
    return PluginRegistry(mt, "conv-1", config)


@pytest.fixture
def files(registry: PluginRegistry) -> Iterator[Files]:
    plugin = Files()
    registry.add(plugin)
    yield plugin
    plugin.gate.open()


@pytest.fixture
def executor(registry: PluginRegistry, files: Files) -> ToolExecutor:
    return ToolExecutor(registry)
