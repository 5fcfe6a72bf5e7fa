"""Answers that are odd, cut off or hostile, from a real socket: what the command line makes of each."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.daemon.home import Home
from meantime.surfaces.daemon_client import daemon_client, daemon_connection, http_response
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.daemon_client.daemon_connection import DaemonConnection
from meantime.surfaces.daemon_client.http_response import Broken
from meantime.surfaces.terminal.errors import DaemonGone

Serve = Callable[[socket.socket], None]
LENGTH = b'HTTP/1.1 200 OK\r\ndate: x\r\nContent-LENGTH:  11 \r\n\r\n{"a": "bc"}'
CHUNKS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b'4\r\n{"a"\r\n0006;name="va;lue"\r\n: "bc"\r\n1 ;x\r\n}\r\n0;last\r\nx-trailer: 1\r\n\r\n'
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH
NO_LENGTH = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"a": "bc"}'
NOTHING = b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n"
ANSWERS = {"length": LENGTH, "chunks": CHUNKS, "interim": INTERIM}


class Door:
    """Gives every connection to `serve`, after it has read one request."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder, folder / "config.toml")
        self.serve: Serve = lambda talk: None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.home.http_socket))
        self._listening.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def says(self, data: bytes) -> None:
        self.serve = lambda talk: talk.sendall(data)

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                talk, _ = self._listening.accept()
            except OSError:
                return
            with talk, contextlib.suppress(OSError):
                asked = b""
                while b"\r\n\r\n" not in asked:
                    asked += talk.recv(65_536)
                self.serve(talk)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    one = Door(tmp_path)
    yield one
    one.close()


@pytest.fixture
def daemon(door: Door) -> Iterator[Daemon]:
    one = Daemon(door.home, start=False)
    yield one
    one.close()


def by_the_book(door: Door) -> tuple[int, bytes]:
    """The same answer, as the standard library reads it."""
    talk = http.client.HTTPConnection("meantime")
    talk.sock = socket.socket(socket.AF_UNIX)
    talk.sock.connect(str(door.home.http_socket))
    with contextlib.closing(talk):
        talk.request("GET", "/a")
        found = talk.getresponse()
        return found.status, found.read()


def ours(door: Door) -> tuple[int, bytes]:
    line = DaemonConnection(door.home.http_socket, 30)
    line.connect()
    with contextlib.closing(line):
        found = line.exchange("GET", "/a")
        return found.status, found.read()


@pytest.mark.parametrize(
    "said",
    [
        LENGTH, CHUNKS, INTERIM, NO_LENGTH, NOTHING,
        b"HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 404 \r\ncontent-length:2\r\n\r\nno",
        b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok",  # ends of lines as old servers had them
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than was announced",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 30_000 + b"\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"z" * 300_000,
    ],
)  # fmt: skip
def test_an_answer_is_read_as_the_standard_library_reads_it(door: Door, said: bytes):
    door.says(said)
    assert ours(door) == by_the_book(door)


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_cut_at_any_byte_is_none(door: Door, daemon: Daemon, said: bytes):
    for cut in range(len(said)):
        door.says(said[:cut])
        with pytest.raises(DaemonGone, match="went away"):
            daemon.get("/a")
        with pytest.raises(DaemonGone), daemon.stream("/a") as arriving:
            list(iter(partial(arriving.read, 3), b""))
        with pytest.raises(DaemonGone), daemon.stream("/a") as arriving:
            list(iter(arriving.line, b""))
    door.says(said)
    assert daemon.get("/a") == {"a": "bc"}


@pytest.mark.parametrize("said", [*ANSWERS.values(), NO_LENGTH], ids=[*ANSWERS, "no length"])
def test_an_answer_may_come_byte_by_byte(door: Door, daemon: Daemon, said: bytes):
    def drip(talk: socket.socket) -> None:
        for byte in said:
            talk.sendall(bytes([byte]))

    door.serve = drip
    assert daemon.get("/a") == {"a": "bc"}
    with daemon.stream("/a") as arriving:
        assert b"".join(iter(lambda: arriving.read(4), b"")) == b'{"a": "bc"}'


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"HTTP/1.1 2x0 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 999 OK\r\n\r\n", b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx: y\r\n folded: z\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    ],
)  # fmt: skip
def test_an_answer_that_is_not_http_is_none(door: Door, daemon: Daemon, said: bytes):
    door.says(said)
    with pytest.raises(DaemonGone):
        daemon.get("/a")


ENDLESS = {
    "a status line": (b"HTTP/1.1 200 ", b"x" * 1_000),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 100),
    "one header": (b"HTTP/1.1 200 OK\r\nx: ", b"y" * 1_000),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    "a chunk extension": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 1_000),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n" * 100),
}


@pytest.mark.parametrize(("begin", "again"), ENDLESS.values(), ids=ENDLESS)
def test_a_head_without_an_end_is_given_up(door: Door, daemon: Daemon, begin: bytes, again: bytes):
    sent: list[int] = []

    def flood(talk: socket.socket) -> None:
        talk.sendall(begin)
        while True:
            talk.sendall(again)
            sent.append(len(again))

    door.serve = flood
    with pytest.raises(DaemonGone, match="went away"):
        daemon.get("/a")
    assert sum(sent) < 20 * http_response.MOST_HEAD  # the rest is what the kernel keeps for us


def test_a_line_of_a_stream_without_an_end_is_given_up(
    door: Door, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(daemon_connection, "MOST_LINE", 1 << 18)

    def flood(talk: socket.socket) -> None:
        talk.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            talk.sendall(b"x" * 10_000)

    door.serve = flood
    with pytest.raises(DaemonGone), daemon.stream("/a") as arriving:
        arriving.line()


def test_a_stream_is_read_as_it_comes_line_by_line(door: Door, daemon: Daemon):
    go_on = threading.Event()

    def speak(talk: socket.socket) -> None:
        talk.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n")
        assert go_on.wait(LIMIT)
        talk.sendall(b"4\r\nc\n\nd\r\n0\r\n\r\n")
        talk.recv(1)  # open until the reader leaves: the last chunk is the end

    door.serve = speak
    with daemon.stream("/a", patience=LIMIT) as arriving:
        assert arriving.line() == b"a\n"
        go_on.set()
        assert [arriving.line() for _ in range(4)] == [b"bc\n", b"\n", b"d", b""]


@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_daemon_that_is_silent_is_not_waited_for_any_longer(door: Door, daemon: Daemon, begun: bytes):
    def hang(talk: socket.socket) -> None:
        talk.sendall(begun)
        talk.recv(1)

    door.serve = hang
    began = time.monotonic()
    with pytest.raises(DaemonGone, match="does not answer"):
        daemon.get("/a", patience=0.05)
    assert time.monotonic() - began < daemon_client.PATIENCE, "the limit is that of the question"


@pytest.mark.parametrize(
    ("said", "lasts"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 204 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\n1", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1", False),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2",
            False,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n",
            False,
        ),
    ],
)
def test_a_connection_is_kept_only_where_the_next_answer_is_surely_the_next(
    door: Door, daemon: Daemon, said: bytes, lasts: bool
):
    def speak(talk: socket.socket) -> None:
        talk.sendall(said)
        talk.recv(1)

    door.serve = speak
    assert daemon.get("/a") in (1, None)
    assert (daemon._line is not None) is lasts


def test_nothing_gets_into_the_head_of_a_request(door: Door, daemon: Daemon):
    door.says(b"HTTP/1.1 204 OK\r\n\r\n")
    with pytest.raises(ValueError, match="control character"):
        daemon.get("/a\r\nx: y")
    with pytest.raises(ValueError, match="control character"), daemon.stream("/a", headers={"x": "1\n2"}):
        pass


@pytest.mark.parametrize("text", ["t_abc-._~", "a/b?c&d=e f+g%", "ä€😀", "", "\x00\n\x7f", "\udcff"])
def test_a_part_of_a_path_is_quoted_as_the_standard_library_does(text: str):
    from urllib.parse import quote

    assert part(text) == quote(text, safe="", errors="replace")


def test_broken_is_a_trouble_of_the_connection():
    assert issubclass(Broken, OSError)  # so `going` needs to know one kind of trouble only
