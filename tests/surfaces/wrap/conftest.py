"""Real servers behind a real wrap and a real daemon, spoken to line by line."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from daemon.conftest import Place, place, place_in  # noqa: F401  a fixture
from surfaces.mcp.speaking import Raw

PEERS = Path(__file__).parents[2] / "integrations" / "mcp" / "peers"
RICH_SERVER = Path(__file__).with_name("rich_server.py")
GUARD = Path(__file__).with_name("guarded_server.py")
SECRET = "sesame-4711-open"
SLOW = ("gate", "hang", "elicits", "takes_back")  # tools of the scripted server that wait
HOSTILE = ("reversed", "half", "late-bytes", "late-words", "late-null")  # and of the hostile one
SOON, NEVER_SOON = 0.3, 3_600  # seconds: a threshold that a test waits for, and one that no test reaches
SENTENCE = (
    "A call that takes longer than {} s continues in the background: the answer then names a task, and you "
    "are told the result when it ends."
)
BACKGROUND = [f"scripted/{tool}" for tool in SLOW] + [f"hostile/{tool}" for tool in HOSTILE]
CONFIG = f"""[http]
port = 0
[mcp]
wrap_threshold = {NEVER_SOON}
wrap_thresholds = {{ {", ".join(f'"{tool}" = {SOON}' for tool in BACKGROUND)} }}
"""


class Peer:
    """The scripted server of tests/integrations/mcp, seen from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def command(self, start: str = "well", *, modern: bool = False) -> list[str]:
        era = ["modern"] if modern else []
        return [sys.executable, str(PEERS / "scripted.py"), start, str(self.folder), *era]

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def until(self, name: str, line: str, count: int = 1) -> None:
        until(
            lambda: self.lines(name).count(line) >= count,
            f"{name} has the line {line!r} {count} times",
            there=lambda: self.lines(name),
        )

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.lines("pids")]


def lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


class Host(Raw):
    """A host that speaks to a wrapped server."""

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:  # an error is an answer, too
        return self.answer(self.send("tools/call", {"name": tool, "arguments": arguments}))


def texts(answer: dict[str, Any]) -> list[str]:
    return [block["text"] for block in answer["result"]["content"]]


def task_of(answer: dict[str, Any]) -> str:
    return answer["result"]["_meta"]["meantime/task"]


def until_listening(port: int) -> None:
    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(is_listening, f"a server listens on port {port}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One daemon for all tests of a file that do not harm it; each test has a conversation of its own."""
    with place_in(tmp_path_factory.mktemp("served")) as made:
        made.configure(CONFIG)
        made.up()
        yield made


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The rich server over HTTP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, str(RICH_SERVER), "http", str(port)], stderr=subprocess.DEVNULL
    ) as server:
        until_listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
        server.kill()


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over HTTP that asks for a login."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, str(GUARD), str(port), SECRET]) as process:
        until_listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    return request.node.name[:100].replace("[", ".").rstrip("]")


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path / "peer")
    yield made
    made.open_gate()  # whatever still waits goes on


Wrapped = Callable[..., Host]


@pytest.fixture
def wrapped(served: Place, peer: Peer, thread: str) -> Iterator[Wrapped]:
    """A host of `served` with the scripted server, or with another command."""
    with hosts_of(served, peer, thread) as made:
        yield made


@contextmanager
def hosts_of(at: Place, peer: Peer, thread: str) -> Iterator[Wrapped]:
    with ExitStack() as hosts:

        def made(*command: str, threshold: float | None = None, **environ: str) -> Host:
            """Without a threshold, the configured ones hold."""
            given = () if threshold is None else ("--threshold", str(threshold))
            options = ("--wrap", *given, "--thread", thread)
            host = Host(at, *options, "--", *(command or peer.command()), **environ)
            return hosts.enter_context(host).hello()  # type: ignore[return-value]

        yield made
