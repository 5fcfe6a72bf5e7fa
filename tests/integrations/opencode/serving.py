"""A real OpenCode server for tests, with a home of its own, which can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.free_port import free_port
from tests.waiting import LIMIT, until_async

from integrations.agents.installed import OPENCODE, OPENCODE_OFFLINE, configure_opencode, listening
from integrations.agents.model import Asked, Model
from integrations.agents.wires.words import Said

ROOT = Path(__file__).resolve().parents[3]
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
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=LIMIT, trust_env=False)
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
        self.process.wait(LIMIT)
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

    async def until_idle(self, session: str) -> None:
        """While what runs on our own loop goes on."""
        await until_async(lambda: asyncio.to_thread(self.idle, session), f"the session {session} is idle")

    async def until_messages(self, session: str, right: Callable[[list[dict[str, Any]]], bool]) -> None:
        """While what runs on our own loop goes on."""
        await until_async(
            lambda: asyncio.to_thread(lambda: right(self.messages(session))),
            f"the session {session} has the messages",
            lambda: asyncio.to_thread(self.messages, session),
        )
