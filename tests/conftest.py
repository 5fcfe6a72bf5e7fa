"""What every test shares."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

import posix_mode
import selection
import worker_mode
from meantime import Meantime, Thread
from meantime.testing import FakeClock, FakeSessionRunner

# How long an example takes says nothing here: machines are shared and times are noisy. Every run has the same
# examples; `pytest --hypothesis-profile=explore` looks for others.
settings.register_profile("meantime", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1_000)
settings.load_profile("meantime")

# Hundreds of daemons and commands are started, as users do. Where this is set, as in many containers, each of
# them compiles the whole package again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

# Whoever runs us in the background of a shell, or under `nohup`, has had these ignored, and all that we start
# inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture
def anyio_backend() -> str:
    """Meantime is written on asyncio."""
    return "asyncio"


def pytest_addoption(parser: pytest.Parser) -> None:
    selection.add_options(parser)
    parser.addoption(
        "--behaviour", action="append", default=[], metavar="ID", help="run only the tests of this behaviour"
    )
    parser.addoption(
        "--place",
        choices=["here", "worker"],
        default="here",
        help="worker: the lessons and tests/runtime run with their work at a worker (tests/worker_mode.py)",
    )
    parser.addoption(
        "--platform",
        choices=["linux", "posix"],
        default="linux",
        help="posix: without all that only Linux has (tests/posix_mode)",
    )
    parser.addoption(
        "--carrier",
        choices=["memory", "nats"],
        default="memory",
        help="with --place=worker: over what the owner and its worker speak",
    )


def pytest_configure(config: pytest.Config) -> None:
    selection.register_marks(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return selection.is_left_out(collection_path, _families(config)) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Over a socket nobody can say when all is quiet after the clock was turned, and nobody can look
    inside: tests that do either are marked, and have an owner of their own."""
    if wanted := set(config.getoption("--behaviour") or ()):
        chosen = [item for item in items if wanted & _behaviours(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items[:] = [item for item in items if selection.belongs(item, _families(config))]
    items[:] = [
        item for item in items if "connected" not in item.name or not item.get_closest_marker("embedded")
    ]
    if config.getoption("--place") == "worker":
        items[:] = [item for item in items if _is_placed(item)]
    if posix_mode.is_asked():
        for item in items:
            if (mark := item.get_closest_marker("linux_only")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"Linux only: {mark.args[0]}"))


def pytest_collection_finish() -> None:
    """Ten thousand collected tests live until the end. Looking through them again and again costs a fifth of
    their CPU."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if posix_mode.is_asked() and posix_mode.refused() and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if posix_mode.is_asked() and (found := posix_mode.refused()):
        terminalreporter.section("refused to Meantime, which must not ask for it here")
        for line in sorted(set(found)):
            terminalreporter.write_line(f"{found.count(line)} times: {line}")


def _is_placed(item: pytest.Item) -> bool:
    """Functions of a connected process are its own, so nothing of it is placed. One store is enough, and a
    ledger in memory costs a third: the lessons, the tests of restarts and tests/workers have SQLite's."""
    calls = getattr(item, "callspec", None)
    given = () if calls is None else calls.params.values()
    is_other = any(isinstance(one, str) and one in ("sqlite", "connected") for one in given)
    return not is_other and item.get_closest_marker("in_process") is None


@pytest.fixture(autouse=True)
def placed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--place") == "worker":
        worker_mode.install(monkeypatch, str(request.config.getoption("--carrier")))


def _families(config: pytest.Config) -> list[str]:
    return config.getoption("--family") or []


def _behaviours(item: pytest.Item) -> set[str]:
    return {id for mark in item.iter_markers("behaviour") for id in mark.args}


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the ledger is: here, in either store; or, where a folder says so, with an owner that we are
    connected to."""
    return request.param


@pytest.fixture
def ledger(place: str, tmp_path: Path) -> str:
    """What only makes sense on one store names it itself."""
    return ":memory:" if place == "memory" else str(tmp_path / "work.db")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner()


@pytest.fixture
async def owner(
    place: str, ledger: str, tmp_path: Path, clock: FakeClock, agents: FakeSessionRunner
) -> AsyncIterator[Meantime]:
    link = tmp_path / "link" if place == "connected" else None
    async with Meantime.open(ledger, clock=clock, runners=[agents], link=link) as owner:
        yield owner


@pytest.fixture
async def mt(place: str, tmp_path: Path, owner: Meantime) -> AsyncIterator[Meantime]:
    if place != "connected":
        yield owner
        return
    async with Meantime.connect(tmp_path / "link") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
