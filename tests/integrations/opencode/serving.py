"""A real OpenCode server for tests, with a home of its own, which can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from integrations.agents.installed import OPENCODE, OPENCODE_OFFLINE, configure_opencode, listening
from integrations.agents.model import Asked, Model
from integrations.agents.wires.words import Said

T = TypeVar("T")
PATIENCE = 120.0  # seconds: the machine may be busy
IDS = re.compile(r'<task-notification id="([^"]+)"')


def _says(part: Said, word: str) -> bool:
    return part.role == "user" and word in part.text


class Place:
    """A home and a project; `environ` and `command` are what starts OpenCode there."""

    def __init__(
        self, folder: Path, model: Model, environ: dict[str, str] | None = None, **config: object
    ) -> None:
        self.model = model
        self.folder = folder
        self.project = folder / "project"
        home = folder / "home"
        self.project.mkdir()
        home.mkdir()
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(home), **OPENCODE_OFFLINE, **(environ or {})}
        configure_opencode(self.project, model, **config)

    def asked(self, word: str) -> list[Asked]:
        """What one conversation asked the model, titles apart."""
        return [asked for asked in self.model.turns if any(_says(part, word) for part in asked.said)]

    def told(self, word: str) -> list[str]:
        """The notices in what the model was asked last, as often as they are there."""
        return IDS.findall(self.asked(word)[-1].text)


class Running(Place):
    """With a server, always at the same address."""

    def __init__(
        self, folder: Path, model: Model, environ: dict[str, str] | None = None, **config: object
    ) -> None:
        super().__init__(folder, model, environ, **config)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)
        self.start()

    def start(self) -> None:
        words = [OPENCODE, "serve", "--port", str(self.port), "--hostname", "127.0.0.1"]
        with (self.folder / "server.err").open("a") as errors:
            self.process = subprocess.Popen(
                words, env=self.environ, cwd=self.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, text=True, start_new_session=True,
            )  # fmt: skip
        listening(self.process)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()

    def session(self, text: str = "") -> str:
        """A new one; with a text, it has had its first turn."""
        id = self.http.post("/session", json={"title": "a test"}).json()["id"]
        if text:
            self.http.post(f"/session/{id}/message", json={"parts": [{"type": "text", "text": text}]})
        return id

    def prompt(self, session: str, text: str) -> None:
        parts = [{"type": "text", "text": text}]
        self.http.post(f"/session/{session}/prompt_async", json={"parts": parts}).raise_for_status()

    def messages(self, session: str) -> list[dict[str, Any]]:
        return self.http.get(f"/session/{session}/message").json()

    def idle(self, session: str) -> bool:
        return session not in self.http.get("/session/status").json()


def eventually(look: Callable[[], T], why: Callable[[], object] = lambda: "") -> T:
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < until, why()
        time.sleep(0.02)
    return found


async def soon(look: Callable[[], T], why: Callable[[], object] = lambda: "") -> T:
    """The same, while what runs on our own loop goes on."""
    until = time.monotonic() + PATIENCE
    while not (found := await asyncio.to_thread(look)):
        assert time.monotonic() < until, why()
        await asyncio.sleep(0.02)
    return found
