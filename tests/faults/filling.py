"""A daemon whose disk fills up: new work is refused with a reason on both doors, reads go on, what runs is
recorded when it ends, and with room again everything is as before. The disk is a small tmpfs of its own."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until_async

from meantime import Call, Degraded, Meantime

from .adoption import clear
from .judge import Fact, Tally, Told, Verdict, judge
from .served import Daemon
from .trial import new_folder

SIZE = "8m"
THREAD = "t"
MOST = 200  # small starts that may still find room


def missing() -> str:
    """Why there can be no small disk here, or the empty string."""
    if os.getuid() != 0:
        return "only root can mount a small tmpfs"
    probe = new_folder()
    try:
        with small_disk(probe):
            return ""
    except OSError as problem:
        return f"a tmpfs cannot be mounted here: {problem}"
    finally:
        probe.rmdir()


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(place)]
    done = subprocess.run(mounting, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def run(seed: int, rounds: int, reproduce: str) -> Tally:
    tally = Tally("full disk of a daemon, again and again", reproduce)
    folder = new_folder()
    home = folder / "home"
    home.mkdir(mode=0o700)
    where = f"seed {seed}, {rounds} times, files in {folder}"
    daemon = Daemon(folder)
    try:
        with small_disk(home):
            try:
                daemon.up()
                verdict = asyncio.run(asyncio.wait_for(_fill(daemon, seed, rounds), (rounds + 2) * LIMIT))
            finally:
                daemon.end(signal.SIGKILL)
                clear(folder)
        tally.add(verdict, where, rounds)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception:
        tally.broke(f"{traceback.format_exc()[-2_000:]}\n{daemon.said()[-1_000:]}", where)
    return tally


async def _fill(daemon: Daemon, seed: int, rounds: int) -> Verdict:
    async with Meantime.connect(daemon.home.link_socket, start=False) as mt:
        starving = Starving(daemon, mt, random.Random(seed))
        for _ in range(rounds):
            await starving.round()
        await starving.tell()
        return judge(starving.facts, {THREAD: starving.told})


class Starving:
    def __init__(self, daemon: Daemon, mt: Meantime, rng: random.Random) -> None:
        self.daemon = daemon
        self.thread = mt.thread(THREAD)
        self.rng = rng
        self.facts: list[Fact] = []
        self.told: list[Told] = []
        self.gate = asyncio.Event()
        self.count = 0

    async def round(self) -> None:
        """The gates are closed, the disk is filled, what is refused is looked at, the gates are opened."""
        self.gate = asyncio.Event()
        go = self.daemon.folder / f"go.{self.count}"
        waits = f"i=0; echo began; while [ ! -e {go} ] && [ $i -lt 6000 ]; do sleep 0.05; i=$((i+1)); done"
        command, function = await self.post(waits), await self.start()
        assert command is not None, "there is room, and a command is refused"
        assert function is not None, "there is room, and a function is refused"
        await until_async(lambda: self._output(command), "the command has begun")
        filler = self.daemon.home.folder / "filler"
        _fill_up(filler)
        await self._until_refused()
        await self._look(command)
        go.touch()
        self.gate.set()
        for task in (command, function):
            await self._see_end(task)
        assert (await self.ask("GET", "/v1/info"))["degraded"] is True
        filler.unlink()
        await self._until_accepted()

    async def _output(self, command: str) -> str:
        return (await self.ask("GET", f"/v1/tasks/{command}/output"))["data"]

    # -- both doors

    def _new(self) -> str:
        self.count += 1
        self.facts.append(Fact("attempt", THREAD, f"t-{self.count}.1"))
        return f"t-{self.count}"

    async def post(self, command: str) -> str | None:
        task = self._new()
        status, answer = await self._send(
            "POST", "/v1/tasks", {"thread": THREAD, "id": task, "command": command}
        )
        if status == 201:
            self.facts.append(Fact("accepted", THREAD, f"{task}.1"))
            return task
        assert (status, answer["code"]) == (507, "degraded"), f"{status} {answer}"
        assert answer["hint"], "nobody knows what to do about it"
        self.facts.append(Fact("refused", THREAD, f"{task}.1"))
        return None

    async def start(self) -> str | None:
        task = self._new()
        gate = self.gate

        async def work() -> str:
            self.facts.append(Fact("ran", THREAD, f"{task}.1"))
            await gate.wait()
            return task

        try:
            await self.thread.start(Call(work), id=task)
        except Degraded:
            self.facts.append(Fact("refused", THREAD, f"{task}.1"))
            return None
        self.facts.append(Fact("accepted", THREAD, f"{task}.1"))
        return task

    async def _until_refused(self) -> None:
        for _ in range(MOST):
            if await self.post("true") is None and await self.start() is None:
                return
        raise AssertionError("the disk is full, and everything is accepted")

    async def _until_accepted(self) -> None:
        await until_async(self._is_accepted, "work is accepted, as there is room again")
        info = await self.ask("GET", "/v1/info")
        assert info["degraded"] is False, "it works again, and says that it does not"

    async def _is_accepted(self) -> bool:
        return await self.post("true") is not None and await self.start() is not None

    async def _look(self, command: str) -> None:
        """Reads go on, and the truth is told."""
        assert (await self.ask("GET", "/v1/info"))["degraded"] is True
        assert (await self.ask("GET", "/v1/health"))["status"] == "ok"
        assert command in {task["id"] for task in (await self.ask("GET", "/v1/tasks?limit=200"))["tasks"]}
        assert (await self.ask("GET", f"/v1/tasks/{command}"))["state"] == "running"
        assert await self._output(command) == "began\n"
        assert await self.thread.get(command)
        snapshot = await asyncio.to_thread(self._first_event)
        assert snapshot.startswith(b"event: snapshot"), snapshot[:200]

    async def _see_end(self, task: str) -> None:
        (ended,) = await self.thread.wait(task, timeout=LIMIT)
        assert ended.status == "completed", f"{task} is {ended.status}: {ended.outcome}"
        self.facts.append(Fact("ended", THREAD, f"{task}.1", ended.status))

    async def tell(self) -> None:
        self.gate.set()
        await until_async(self._has_told_all, "everything is told", self.thread.list)

    async def _has_told_all(self) -> bool:
        async with self.thread.turn() as turn:
            self.told += [Told(notice.id, str(notice.task.status)) for notice in turn.notices]
            if turn.notices:
                await turn.ack()
        return not await self.thread.list() and not (await self.ask("GET", "/v1/notices"))["notices"]

    # -- HTTP

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self._send(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    async def _send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        return await asyncio.to_thread(self._send_now, method, path, body)

    def _send_now(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        line = self._line()
        try:
            headers = {"Content-Type": "application/json"} if method == "POST" else {}
            line.request(method, path, json.dumps(body) if method == "POST" else None, headers)
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            line.close()

    def _first_event(self) -> bytes:
        line = self._line()
        try:
            line.request("GET", "/v1/events")
            return line.getresponse().read1(100)
        finally:
            line.close()

    def _line(self) -> http.client.HTTPConnection:
        line = http.client.HTTPConnection("meantime", timeout=LIMIT)
        line.sock = socket.socket(socket.AF_UNIX)
        line.sock.settimeout(LIMIT)
        line.sock.connect(str(self.daemon.home.http_socket))
        return line


def _fill_up(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise
