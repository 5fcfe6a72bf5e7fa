"""One server for a file of tests: each test has sessions of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integrations.agents.model import Model

from .serving import Running


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    one = Running(tmp_path_factory.mktemp("opencode"), model)
    yield one
    one.kill()


@pytest.fixture(autouse=True)
def _nobody_answers_specially(model: Model) -> Iterator[None]:
    yield
    model.before_answer = lambda asked: None
