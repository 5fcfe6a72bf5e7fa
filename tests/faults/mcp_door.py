"""A daemon whose MCP door is spoken to byte by byte, what was promised there, and what was told."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, until

from meantime.surfaces.http.tokens import Tokens

from .judge import Fact, Told
from .served import Daemon

OLDER, MODERN = "2025-11-25", "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
INFO = {"name": "faulty", "version": "1"}
CONFIG = """
[http]
port = 0
[timeouts]
stop_grace = 0.5
stop_deadline = 3.0
[runtime]
reconcile_every = 0.5
"""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: bytes

    @property
    def message(self) -> dict[str, Any]:
        """Of JSON-RPC; in a stream, the last one."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [
                line[5:] for line in self.text.splitlines() if line.startswith(b"data:") and line[5:].strip()
            ]
            return json.loads(lines[-1])
        return json.loads(self.text)


def request(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {} if params is None else params}


def initialize(**capabilities: Any) -> dict[str, Any]:
    return request("initialize", {"protocolVersion": OLDER, "capabilities": capabilities, "clientInfo": INFO})


class Scene:
    """Facts are what we asked for and were promised; `told` is what conversations were told. Both are kept
    here, outside of the daemon."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.daemon = Daemon(folder)
        self.daemon.home.config.write_text(config)
        self.facts: list[Fact] = []
        self.told: dict[str, list[Told]] = {}
        self.count = 0

    def up(self) -> None:
        self.daemon.up()
        until(self.daemon.home.discovery.exists, "there is a port")
        found = json.loads(self.daemon.home.discovery.read_text())
        self.port: int = found["port"]
        self.token = self.daemon.home.token.read_text().strip()

    def new_thread(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def thread_token(self, thread: str) -> str:
        return Tokens(self.token).for_thread(thread)

    # -- HTTP

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=2 * LIMIT)

    def head(self, method: str = "POST", path: str = "/mcp", **headers: str) -> bytes:
        given = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def ask(self, body: Any, method: str = "POST", path: str = "/mcp", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if method == "POST":
            headers.setdefault("Content_Length", str(len(data)))
        with self.connect() as talk:
            talk.sendall(self.head(method, path, **headers))
            with suppress(OSError):  # what is too big is not read to its end
                talk.sendall(data if method == "POST" else b"")
            return read_answer(talk)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.ask(body or {}, method, path)
        assert answer.status < 300, f"{method} {path}: {answer}"
        return json.loads(answer.text) if answer.text else None

    # -- work

    def start(self, thread: str, **work: Any) -> str:
        """Over HTTP; returns its id. By default a command that ends at once."""
        self.count += 1
        task = f"{thread}-{self.count}"
        self.facts.append(Fact("attempt", thread, f"{task}.1"))
        self.api("POST", "/v1/tasks", {"thread": thread, "id": task, **(work or {"command": "true"})})
        self.facts.append(Fact("accepted", thread, f"{task}.1"))
        return task

    def promised(self, thread: str, task: str) -> None:
        """One that was started at the door itself."""
        self.facts += [Fact(what, thread, f"{task}.1") for what in ("attempt", "accepted")]

    def end(self, task: str) -> dict[str, Any]:
        found = self.api("GET", f"/v1/tasks/{task}/wait?timeout={LIMIT:g}")
        ended = self.api("GET", f"/v1/tasks/{task}")
        assert ended["state"] not in ("queued", "running", "cancelling"), f"{task} hangs: {found}"
        self.facts.append(Fact("ended", task.rpartition("-")[0], f"{task}.1", ended["state"]))
        return ended

    def hear(self, thread: str, *, again: bool = True) -> None:
        """An honest client is told everything that the thread was promised. `again`: what it has already is
        looked for by its id, as a host of class C must."""
        wanted = {fact.id for fact in self.facts if fact.what == "accepted" and fact.thread == thread}
        lines = self.told.setdefault(thread, [])

        def is_told() -> bool:
            if wanted <= {line.id for line in lines}:
                return True
            self.note(thread, session.call("list"), again=again)
            return False

        with Session(self, thread) as session:
            until(is_told, f"{thread} is told of {wanted}", lambda: lines)
            session.call("list")  # it has read the last answer

    def note(self, thread: str, result: dict[str, Any], *, again: bool = True) -> None:
        lines = self.told.setdefault(thread, [])
        for id in (result.get("_meta") or {}).get("meantime/notices", []):
            if not again or id not in {line.id for line in lines}:
                lines.append(Told(id))


def read_answer(talk: socket.socket) -> Answer:
    reply = http.client.HTTPResponse(talk)
    try:
        reply.begin()
        return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
    except (http.client.HTTPException, ConnectionError):
        return Answer(0, {}, b"")  # it was let go


class Session:
    """An honest client by 2025-11-25, with a session of its own."""

    def __init__(self, scene: Scene, thread: str, **headers: str) -> None:
        self._scene = scene
        self._path = f"/mcp?thread={thread}"
        self._headers = headers
        self._count = 1

    def __enter__(self) -> Session:
        opened = self._scene.ask(initialize(), path=self._path, **self._headers)
        assert opened.status == 200, opened
        self.id = opened.headers["mcp-session-id"]
        self._headers |= {"Mcp_Session_Id": self.id, "Mcp_Protocol_Version": OLDER}
        said = self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert said.status == 202, said
        return self

    def __exit__(self, *_: object) -> None:
        self._scene.ask(b"", "DELETE", self._path, **self._headers)

    def send(self, message: Any, **headers: str) -> Answer:
        return self._scene.ask(message, path=self._path, **{**self._headers, **headers})

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        self._count += 1
        answer = self.send(request(method, params, self._count))
        assert answer.status == 200, answer
        return answer.message

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]

    def begin(self, name: str, /, **arguments: Any) -> socket.socket:
        """A call whose answer is not waited for."""
        data = json.dumps(request("tools/call", {"name": name, "arguments": arguments}, 99)).encode()
        talk = self._scene.connect()
        talk.sendall(self._scene.head(path=self._path, Content_Length=str(len(data)), **self._headers) + data)
        return talk


class Pipe:
    """`meantime mcp`, line by line."""

    def __init__(self, scene: Scene, thread: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "meantime", "mcp", "--thread", thread],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=scene.daemon.environ, cwd=scene.daemon.folder,
        )  # fmt: skip
        self._count = 0

    def __enter__(self) -> Pipe:
        self.ask("initialize", initialize()["params"])
        self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with suppress(OSError, ValueError):
            self.process.communicate()
        self.process.wait()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None) -> int:
        self._count += 1
        self.write(json.dumps(request(method, params, self._count)).encode() + b"\n")
        return self._count

    def answer(self, id: int | None) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, b""):
            found = json.loads(line)  # everything on stdout is a message
            if found.get("id", -1) == id:
                return found
        raise AssertionError("it is gone")

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        return self.answer(self.send(method, params))

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]


def same(answers: Iterable[Any]) -> None:
    """Whoever guesses learns nothing from the difference."""
    first, *others = answers
    assert all(other == first for other in others), f"{first} and {others}"
