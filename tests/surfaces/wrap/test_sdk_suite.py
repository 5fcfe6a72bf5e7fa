"""The MCP SDK's own tests, unmodified, with their servers behind a wrap: they pass as without it, except for
the differences that are named here. `make sdk` installs them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from daemon.conftest import Place, place_in

from .test_http_hosts import port_of, token_of

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / ".sdk"
PLUGIN = Path(__file__).with_name("sdk")
LONGEST = 600.0  # seconds of a run, on a busy machine
# Without test_timeouts: it turns a clock in its own process, and takes no transport.
ALL = (
    "--ignore=tests/interaction/lowlevel/test_timeouts.py",
    "tests/interaction/lowlevel",
    "tests/interaction/mcpserver",
)
FEWEST = 200  # tests: fewer say that they are not found any more, and not that all is well
# Each of these starts a process, so they are few: requests and notifications in both directions.
OF_STDIO = tuple(
    f"tests/interaction/lowlevel/test_{name}.py"
    for name in ("cancellation", "progress", "roots", "list_changed", "subscriptions", "ping")
)
FEWEST_OF_STDIO = 30
LATE_PROGRESS = (
    "lowlevel/test_progress.py::test_progress_sent_after_the_response_is_not_delivered_to_the_callback"
    "[streamable-http-2025-11-25]"
)
# The tests that fail behind a wrap, and why that is meant.
DIFFERENCES = {
    LATE_PROGRESS: "Progress of a call that has been answered is dropped: its token is "
    "ours, and names no call any more. The test waits for it at the client.",
    "lowlevel/test_subscriptions.py::test_the_subscription_id_is_the_listen_request_id_the_server_saw"
    "[streamable-http-2026-07-28]": "Ids are ours at the server, so that no reply can reach another call. "
    "The client still gets its own id.",
}
pytestmark = [
    pytest.mark.servers,
    # On CI they must be there, and the tests fail without them.
    pytest.mark.skipif(
        not (FOLDER / ".ready").exists() and os.environ.get("CI") != "true",
        reason="the MCP SDK's own tests are not installed: make sdk",
    ),
]


class Bench(NamedTuple):
    """A daemon, and the port on which every server of the SDK's tests is, one after the other."""

    at: Place
    listening: socket.socket

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self.listening.getsockname()[1]}/mcp"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with socket.create_server(("127.0.0.1", 0)) as listening, place_in(tmp_path_factory.mktemp("sdk")) as at:
        made = Bench(at, listening)
        at.configure(f"[http]\nport = 0\n[mcp.servers.sdk]\nurl = {json.dumps(made.server)}\n")
        at.up()
        yield made


def outcomes(bench: Bench, report: Path, way: dict[str, Any], *chosen: str) -> dict[str, tuple[str, str]]:
    """How each test has ended, and why."""
    report.touch()
    number = bench.listening.fileno()
    said = {"SDK_WAY": json.dumps(way), "SDK_SOCKET": str(number), "SDK_REPORT": str(report)}
    python_path = os.pathsep.join([str(PLUGIN), str(FOLDER / "source")])
    options = ["-q", "-c", os.devnull, "--rootdir", ".", "-p", "through_wrap", "-p", "no:cacheprovider"]
    options += ["-o", "markers=requirement(id): of the SDK", "-o", "xfail_strict=true", "-W", "ignore"]
    ran = subprocess.run(
        [str(FOLDER / "bin" / "python"), "-m", "pytest", *options, *chosen],
        cwd=FOLDER / "source",
        env={**bench.at.environ, **said, "PYTHONPATH": python_path},
        pass_fds=[number],
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr  # 1: some have failed
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return {name: (outcome, why) for name, outcome, why in lines}


def failed(found: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: why for name, (outcome, why) in found.items() if outcome == "failed"}


@pytest.fixture(scope="module")
def direct(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Without the wrap."""
    return outcomes(bench, tmp_path_factory.mktemp("direct") / "report", {"url": bench.server}, *ALL)


def test_the_tests_of_the_sdk_pass_without_the_wrap(direct: dict[str, tuple[str, str]]):
    assert len(direct) >= FEWEST
    assert failed(direct) == {}


def test_the_tests_of_the_sdk_pass_through_a_url(
    bench: Bench, direct: dict[str, tuple[str, str]], tmp_path: Path
):
    at = bench.at
    url = f"http://127.0.0.1:{port_of(at)}/~{token_of(at)}/mcp/wrap/sdk?threshold=-1&thread=THREAD"
    found = outcomes(bench, tmp_path / "report", {"url": url}, *ALL)
    assert found.keys() == direct.keys()
    assert_known(found)


def test_the_tests_of_the_sdk_pass_on_stdio(bench: Bench, direct: dict[str, tuple[str, str]], tmp_path: Path):
    words = ["mcp", "--wrap", "--threshold", "-1", "--thread", "THREAD", bench.server]
    command = [sys.executable, "-m", "meantime", *words]
    # It waits for five seconds; once, through a URL, is enough.
    but = f"--deselect=tests/interaction/{LATE_PROGRESS}"
    found = outcomes(bench, tmp_path / "report", {"command": command}, but, *OF_STDIO)
    assert len(found) >= FEWEST_OF_STDIO
    assert found.keys() <= direct.keys()
    assert_known(found, DIFFERENCES.keys() - {LATE_PROGRESS})


def assert_known(found: dict[str, tuple[str, str]], meant: Set[str] = DIFFERENCES.keys()) -> None:
    """A difference that is gone is to be taken from the list, too."""
    fell = failed(found)
    new = {name: why for name, why in fell.items() if name not in meant}
    assert not new, "\n\n".join(f"{name}\n{why}" for name, why in new.items())
    assert fell.keys() == meant
