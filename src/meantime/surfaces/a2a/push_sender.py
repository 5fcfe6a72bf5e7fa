"""Push notifications: a webhook is told when a task has ended, or needs an answer.

Configurations are in a file beside the server's token, so that a webhook is told after a crash, too. One that
does not take a notification is tried again, a few times. A crash between the notification and the file is the
only way to be told twice.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import ssl
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound, Refused
from meantime.ports.clock import Clock, sleep
from meantime.surfaces.agent_runs.conversations import AgentConversations
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.agent_runs.run_follower import RunFollower
from meantime.surfaces.http.responses import encode

from .a2a_encoding import wire_a2a_task
from .message_params import PushConfig
from .push_file import KeptPush, read_pushes, write_pushes

LOG = logging.getLogger("meantime.http")
MOST_CONFIGS = 1_000  # of all tasks together
MOST_OF_TASK = 10
SECONDS = 10.0  # for a webhook to answer
PAUSES = (1.0, 4.0, 16.0, 64.0)  # seconds between the attempts
_TOO_LONG = 4_096


class Watched(NamedTuple):
    kept: KeptPush
    watcher: asyncio.Task[None]


class PushSender:
    """path: the file of configurations; None keeps them in memory."""

    def __init__(
        self, conversations: AgentConversations, follower: RunFollower, clock: Clock, path: Path | None
    ) -> None:
        self._conversations = conversations
        self._follower = follower
        self._clock = clock
        self._path = path
        self._saving = asyncio.Lock()
        self._watched: dict[str, dict[str, Watched]] = {}

    async def open(self) -> None:
        """Watches what a former server was to tell of."""
        kept = [] if self._path is None else await asyncio.to_thread(read_pushes, self._path)
        for one in kept[:MOST_CONFIGS]:
            try:
                run = await self._conversations.run(one.config.task_id, None)
            except NotFound:
                continue  # it was purged
            self._begin(run, one)

    async def add(self, run: NumberedRun, given: PushConfig) -> PushConfig:
        """One of the same id is replaced. One without an id that is there already stays as it is: clients
        send theirs with each message, and a webhook is to be told once."""
        check_url(given.url)
        known = None if given.id else next((one for one in self.of(run) if _alike(one, given)), None)
        if known is not None:
            return known
        config = replace(given, id=given.id or str(uuid.uuid4()), task_id=run.id)
        self._forget(run.id, config.id)
        of_task = self._watched.get(run.id, {})
        if len(of_task) >= MOST_OF_TASK or sum(map(len, self._watched.values())) >= MOST_CONFIGS:
            raise Refused("There are too many push configurations.", code="limit", hint="Delete one.")
        self._begin(run, KeptPush(config))
        await self._save()
        return config

    def _begin(self, run: NumberedRun, kept: KeptPush) -> None:
        watcher = asyncio.ensure_future(self._watch(run, kept))
        self._watched.setdefault(run.id, {})[kept.config.id] = Watched(kept, watcher)

    def find(self, run: NumberedRun, id: str) -> PushConfig:
        found = self._watched.get(run.id, {}).get(id)
        if found is None:
            raise NotFound(f"The task {run.id} has no push configuration {id[:64]!r}.")
        return found.kept.config

    def of(self, run: NumberedRun) -> Sequence[PushConfig]:
        return [one.kept.config for one in self._watched.get(run.id, {}).values()]

    async def remove(self, run: str, id: str) -> None:
        self._forget(run, id)
        await self._save()

    async def _save(self) -> None:
        if self._path is None:
            return
        async with self._saving:
            kept = [one.kept for of_task in self._watched.values() for one in of_task.values()]
            await asyncio.to_thread(write_pushes, self._path, kept)

    def _forget(self, run: str, id: str) -> None:
        of_task = self._watched.get(run, {})
        found = of_task.pop(id, None)
        if not of_task:
            self._watched.pop(run, None)
        if found is not None and found.watcher is not asyncio.current_task():
            found.watcher.cancel()

    async def close(self) -> None:
        watchers = [one.watcher for of_task in self._watched.values() for one in of_task.values()]
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    async def _watch(self, run: NumberedRun, kept: KeptPush) -> None:
        """Tells each question once, and the ending."""
        id = run.id
        try:
            while True:
                async for step in self._follower.follow(run):
                    run = step.run
                if run.ended:
                    break
                question = run.task.question.id if run.task.question is not None else ""
                if question != kept.told:
                    await self._tell(run, kept.config)
                    kept = replace(kept, told=question)
                    self._watched[id][kept.config.id] = self._watched[id][kept.config.id]._replace(kept=kept)
                    await self._save()
                await self._follower.pause(run)
            await self._tell(run, kept.config)
            await self.remove(id, kept.config.id)
        except (
            MeantimeError,
            OSError,
        ) as problem:  # the task was purged, the disk is full, the server closes
            LOG.warning("The webhook of %s is not told any more: %s", id, problem)

    async def _tell(self, run: NumberedRun, config: PushConfig) -> None:
        page = await self._follower.lines(run)
        lines = [one for one in page.lines if one.line.run == run.number]
        body = encode({"task": wire_a2a_task(run, lines)})
        for pause in (*PAUSES, None):
            try:
                status = await asyncio.to_thread(post, config, body)
                if status < 300:
                    return
                problem: object = f"it answered {status}"
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = error
            if pause is None:
                LOG.warning("The webhook of %s did not take its notification: %s", run.id, problem)
                return
            await sleep(self._clock, pause)


def _alike(one: PushConfig, other: PushConfig) -> bool:
    return replace(one, id="", task_id="") == replace(other, id="", task_id="")


def check_url(url: str) -> None:
    try:
        split = urlsplit(url)
        good = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        good = False
    if not good or not url.isprintable() or not url.isascii() or " " in url:
        raise InvalidInput(f"{url[:80]!r} is not an address of a webhook.", hint="Use https://… or http://…")


def post(config: PushConfig, body: bytes) -> int:
    """The status of the answer. Redirects are not followed."""
    split = urlsplit(config.url)
    kind = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
    headers = {"Content-Type": "application/json"}
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    if config.authentication is not None and config.authentication.credentials:
        scheme = config.authentication.scheme or "Bearer"
        headers["Authorization"] = f"{scheme} {config.authentication.credentials}"
    connection = kind(split.hostname or "", split.port, timeout=SECONDS)
    try:
        target = (split.path or "/") + (f"?{split.query}" if split.query else "")
        connection.connect()
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):  # it may have answered
            connection.request("POST", target, body, headers)
        answer = connection.getresponse()
        answer.read(_TOO_LONG)
        return answer.status
    finally:
        connection.close()
