"""`meantime mcp`, spoken to line by line: what an SDK would not do can be done with this."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import termios
from typing import Any

from tests.waiting import LIMIT

from daemon.conftest import Place

COMMAND = [sys.executable, "-m", "meantime", "mcp"]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Raw:
    def __init__(self, place: Place, *arguments: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**place.environ, **environ}, cwd=place.home.config.parent,
        )  # fmt: skip
        self._count = 0
        self._rest = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def hello(self) -> Raw:
        self.ask("initialize", HELLO)
        self.say({"method": "notifications/initialized"})
        return self

    def leave(self) -> None:
        """As a client that is done."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def say(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._count += 1
        self.say({"id": self._count, "method": method, "params": params or {}})
        return self._count

    def read(self) -> dict[str, Any]:
        """The next message; everything on stdout must be one."""
        return json.loads(self.read_line())

    def read_line(self) -> bytes:
        assert self.process.stdout is not None
        place = self.process.stdout.fileno()
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            assert select.select([place], [], [], LIMIT)[0], "it says nothing"
            said = os.read(place, 65_536)
            assert said, (self.process.stderr.read() if self.process.stderr else b"").decode()
            parts.append(said)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def waiting(self) -> int:
        """Bytes that it has written and that we have not read."""
        assert self.process.stdout is not None
        return int.from_bytes(fcntl.ioctl(self.process.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)

    def answer(self, id: int | None) -> dict[str, Any]:
        while (found := self.read()).get("id", -1) != id:
            pass
        return found

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.answer(self.send(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def told(self) -> list[str]:
        return self.call("list").get("_meta", {}).get("meantime/notices", [])
