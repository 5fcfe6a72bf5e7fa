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
