"""Fixtures of the tests that drive real agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.person import Person

from . import report
from .installed import needs
from .model import Model
from .scene import Scene
from .terminals import HOSTS, Host


def pytest_configure(config: pytest.Config) -> None:
    if report.FILE and not hasattr(config, "workerinput"):  # workers send theirs
        config.pluginmanager.register(report.Report())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the agents that take seconds of CPU to start, one plays each scenario, in turn: all of them would
    take a quarter of the time of `make test-all`. `make agents-newest`, which reports, plays all."""
    others = ["opencode", "codex", "gemini"]
    scenarios: dict[str, int] = {}
    left_out: list[pytest.Item] = []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        agent = getattr(given.get("host") or given.get("of"), "name", "")
        if report.FILE or agent not in others or item.get_closest_marker("every_agent"):
            continue
        scenario = f"{item.nodeid.partition('[')[0]} {given.get('victim', '')}"
        turn = scenarios.setdefault(scenario, len(scenarios))
        if agent != others[turn % len(others)]:
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    one = Person(tmp_path)
    assert one("up").code == 0
    yield one
    one.leave()


@pytest.fixture(params=[pytest.param(host, marks=needs(host.program), id=host.name) for host in HOSTS])
def host(request: pytest.FixtureRequest) -> Host:
    return request.param


@pytest.fixture
def bare(request: pytest.FixtureRequest, host: Host, person: Person, model: Model) -> Iterator[Scene]:
    """An agent that knows nothing of Meantime."""
    scene = Scene(host, person, model)
    yield scene
    report.note(request.node, scene)


@pytest.fixture
def scene(bare: Scene) -> Scene:
    bare.install()
    return bare
