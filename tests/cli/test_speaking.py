"""How the command line speaks to a daemon that behaves badly: each of these is scripted."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from meantime.daemon.home import Home
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.verbs.ps import done_today
from meantime.surfaces.cli.verbs.run import started
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import CliError, DaemonGone, DaemonRefused

Request = tuple[str, str, Any]


def answer(status: int, body: object) -> bytes:
    data = json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


class Scripted:
    """Answers request after request from a script; None breaks the connection off instead."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder, folder / "config.toml")
        self.heard: list[Request] = []
        self.script: list[bytes | None] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self.home.http_socket))
        self._door.listen(8)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _serve(self) -> None:
        while True:
            try:
                line, _ = self._door.accept()
            except OSError:
                return
            with line, line.makefile("rb") as said:
                while (request := _request(said)) is not None:
                    self.heard.append(request)
                    told = self.script.pop(0)
                    if told is None:
                        break
                    line.sendall(told)
                    if told.endswith(b"..."):  # the rest never comes
                        break


def _request(said: Any) -> Request | None:
    first = said.readline().decode().split()
    if not first:
        return None
    length = 0
    while (line := said.readline().strip()) != b"":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return first[0], first[1], json.loads(said.read(length)) if length else None


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Scripted]:
    one = Scripted(tmp_path)
    yield one
    one.close()


@pytest.fixture
def daemon(scripted: Scripted) -> Iterator[Daemon]:
    one = Daemon(scripted.home, start=False)
    yield one
    one.close()


def test_one_connection_for_many_questions(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(200, {"n": 1}), answer(201, {"n": 2}), b"HTTP/1.1 204 X\r\n\r\n"]
    assert daemon.get("/a", x=1, y=None, z="ä b") == {"n": 1}
    assert daemon.post("/b", {"k": "v"}) == {"n": 2}
    assert daemon.post("/c") is None
    assert scripted.heard == [
        ("GET", "/a?x=1&z=%C3%A4%20b", None),
        ("POST", "/b", {"k": "v"}),
        ("POST", "/c", {}),
    ]


def test_a_question_is_asked_again_on_a_connection_that_was_closed(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(200, 1), None, answer(200, 2)]
    assert daemon.get("/a") == 1
    assert daemon.get("/b") == 2


def test_a_write_is_never_sent_twice(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(200, 1), None]
    daemon.get("/a")
    with pytest.raises(DaemonGone):
        daemon.post("/b")
    assert len(scripted.heard) == 2


def test_a_write_after_an_idle_connection_was_closed_goes_through(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(200, 1), answer(200, 2)]
    daemon.get("/a")
    line = daemon._line
    assert line is not None
    line.sock.shutdown(socket.SHUT_RDWR)  # as a server does that was not spoken to for long
    assert daemon.post("/b") == 2


@pytest.mark.parametrize(
    "half", [b"HTTP/1.1 200 X\r\nContent-Length: 50\r\n\r\n{...", b"nonsense...", b"HTTP/1.1..."]
)
def test_half_an_answer_is_no_answer(scripted: Scripted, daemon: Daemon, half: bytes):
    scripted.script = [half]
    with pytest.raises(DaemonGone) as caught:
        daemon.get("/a")
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(400, "invalid_input", 2), (404, "not_found", 3), (409, "ambiguous", 3), (401, "", 4), (403, "", 4),
     (409, "task_cancelled", 7), (409, "task_lost", 6), (409, "still_running", 8), (429, "limit_reached", 1),
     (507, "degraded", 1), (500, "internal", 1), (413, "body_too_big", 2)],
)  # fmt: skip
def test_a_no_has_its_exit_code(scripted: Scripted, daemon: Daemon, status: int, code: str, exit_code: int):
    scripted.script = [answer(status, {"error": "No.", "code": code, "hint": "Do this."})]
    with pytest.raises(DaemonRefused) as caught:
        daemon.get("/a")
    assert (caught.value.exit_code, caught.value.what, caught.value.hint) == (exit_code, "No.", "Do this.")


def test_a_no_that_is_not_json(scripted: Scripted, daemon: Daemon):
    scripted.script = [b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\noops"]
    with pytest.raises(DaemonRefused, match="The daemon answered 500"):
        daemon.get("/a")


def test_a_daemon_that_closes_is_gone(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(503, {"error": "This Meantime is closed.", "code": "closed"})]
    with pytest.raises(DaemonGone):
        daemon.get("/a")


def test_a_reader_s_own_trouble_is_not_the_daemon_s(scripted: Scripted, daemon: Daemon):
    scripted.script = [answer(200, "x" * 100)]

    def read() -> None:
        with daemon.stream("/a") as arriving:
            assert arriving.read(10)
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        read()


LOST: list[tuple[str, list[bytes | None], list[str]]] = [
    ("it was taken", [None, answer(200, {"id": "x"})], ["POST", "GET"]),
    (
        "it was not",
        [None, answer(404, {"code": "not_found"}), answer(201, {"id": "x"})],
        ["POST", "GET", "POST"],
    ),
]


@pytest.mark.parametrize(("what", "script", "methods"), LOST, ids=[case[0] for case in LOST])
def test_a_start_whose_answer_was_lost(
    scripted: Scripted, daemon: Daemon, what: str, script: list[bytes | None], methods: list[str]
):
    """Its id is ours: so it is looked for, and never started twice."""
    scripted.script = list(script)
    assert started(daemon, {"id": "x", "command": "true"}) == {"id": "x"}
    assert [method for method, _, _ in scripted.heard] == methods


def test_pages_are_read_to_their_end(scripted: Scripted, daemon: Daemon):
    def page(ids: list[str], total: int) -> bytes:
        return answer(200, {"tasks": [{"id": id, "state": "failed"} for id in ids], "total": total})

    scripted.script = [page(["a", "b"], 250), page(["b", "c"], 250)]  # one moved while we read
    assert [task["id"] for task in task_search.tasks(daemon, ["failed"], thread="t")] == ["a", "b", "c"]
    assert [path for _, path, _ in scripted.heard] == [
        f"/v1/tasks?status=error&limit=200&offset={offset}&thread=t" for offset in (0, 200)
    ]


def test_done_today_is_since_midnight(scripted: Scripted, daemon: Daemon):
    ended = ["1970-01-02T00:00:00.000Z", "1970-01-01T23:59:59.999Z", "1970-01-02T01:00:00.000Z"]
    scripted.script = [answer(200, {"tasks": [{"completedAt": at} for at in ended]})]
    assert done_today(daemon, 86_400.0) == "2 done today"
    scripted.script = [answer(200, {"tasks": [{"completedAt": ended[0]}] * 50})]
    assert done_today(daemon, 86_400.0) == "50+ done today"


def test_a_daemon_that_has_gone_is_not_started_again(scripted: Scripted, daemon: Daemon):
    daemon.start = True
    scripted.script = [answer(200, 1)]
    daemon.get("/a")
    daemon.close()
    scripted.home.http_socket.unlink()
    with pytest.raises(DaemonGone):
        daemon.get("/b")


def test_nobody_is_there(tmp_path: Path):
    refusals: list[Callable[[], None]] = [lambda: None, lambda: (tmp_path / "http.sock").touch()]
    for prepare in refusals:
        prepare()
        with pytest.raises(CliError, match="not running") as caught:
            Daemon(Home(tmp_path, tmp_path / "config.toml"), start=False).get("/a")
        assert caught.value.exit_code == 5
