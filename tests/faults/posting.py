"""A process that uses an owner over HTTP alone, which is killed at any system call of any write.

    python -m tests.faults.posting story|reopen <folder>

What was answered is written down outside (`works.say`). The conversation is a file that is looked into
before it is written to. `reopen` writes what it finds missing into `problems`. GONE is the exit code of one
whose owner was killed; the file `gone` says that, too.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until_async

from . import works
from .judge import Told, read_facts
from .posted import CALL, THREAD

GONE = 3
UNTOLD = "unread,leased,parked"


class Line(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("meantime", timeout=2 * LIMIT)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Poster:
    def __init__(self, folder: Path) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.file = folder / "b.jsonl"
        self.line = Line(folder / "http.sock")
        self.count = 0
        self.turn = ""
        self.held: list[dict[str, Any]] = []

    # -- HTTP

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await asyncio.to_thread(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        self.line.request(method, path, json.dumps(body or {}) if method == "POST" else None, headers)
        answer = self.line.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    async def post(self, path: str, body: Any = None) -> Any:
        """Only what was answered well is promised."""
        status, answer = await self.ask("POST", path, body)
        assert status < 300, f"POST {path}: {status} {answer}"
        return answer

    # -- each write once

    async def start(self, **work: Any) -> str:
        self.count += 1
        task = f"b-{self.count}"
        works.say("attempt", THREAD, f"{task}.1")
        if "tool" in work:
            work["arguments"] = {"id": f"{task}.1"}
        if "command" in work:
            said = works.saying(self.folder, "ran", THREAD, f"{task}.1")
            work["command"] = f"{said}; {work['command']}"
        await self.post("/v1/tasks", {"thread": THREAD, "id": task, **work})
        works.say("accepted", THREAD, f"{task}.1")
        return task

    async def end(self, *tasks: str) -> None:
        answer = await self.post("/v1/wait", {"ids": list(tasks), "timeout": LIMIT})
        assert answer["done"], answer

    async def send(self, task: str) -> None:
        await self.post(f"/v1/tasks/{task}/send", {"data": "hello\n"})
        works.say("sent", THREAD, task)

    async def cancel(self, task: str) -> None:
        await self.post(f"/v1/tasks/{task}/cancel", {"reason": "enough"})
        works.say("cancelled", THREAD, task)

    async def resume(self, task: str) -> None:
        works.say("attempt", THREAD, f"{task}.2")
        await self.post(f"/v1/tasks/{task}/resume", {"prompt": "go on"})
        works.say("accepted", THREAD, f"{task}.2")

    async def answer(self, task: str) -> None:
        async def asks() -> bool:
            return (await self.ask("GET", f"/v1/tasks/{task}"))[1]["state"] == "waiting"

        await until_async(asks, f"{task} asks")
        await self.post(f"/v1/tasks/{task}/answer", {"answer": "yes"})
        works.say("answered", THREAD, task)

    async def promote(self, call: str) -> None:
        async def is_there() -> bool:
            return call in {one["id"] for one in (await self.ask("GET", "/v1/calls"))[1]["tasks"]}

        await until_async(is_there, f"{call} is there")
        await self.post(f"/v1/tasks/{call}/promote")
        works.say("accepted", THREAD, f"{call}.1")

    async def open_turn(self, limit: int = 100) -> list[str]:
        works.say("turn", THREAD, "")
        opened = await self.post(f"/v1/threads/{THREAD}/turns", {"lease": 600, "limit": limit})
        self.turn, self.held = opened["turn"], opened["notices"]
        return [notice["id"] for notice in self.held]

    async def go_on(self) -> list[str]:
        """In the middle of a turn: what has ended since, and time for it."""
        await self.post(f"/v1/turns/{self.turn}/renew")
        fresh = (await self.post(f"/v1/turns/{self.turn}/boundary"))["notices"]
        self.held += fresh
        return [notice["id"] for notice in fresh]

    async def tell(self, *ids: str) -> None:
        """Looked for, written, acknowledged."""
        known = {line.id for line in self.lines()}
        with self.file.open("ab") as file:
            for notice in self.held:
                if notice["id"] in ids and notice["id"] not in known:
                    file.write(json.dumps([notice["id"], notice["status"]]).encode() + b"\n")
        answer = await self.post(f"/v1/turns/{self.turn}/ack", {"notices": list(ids)})
        for id in answer["told"]:
            works.say("acked", THREAD, id)

    async def release(self, *, failed: bool = False) -> None:
        await self.post(f"/v1/turns/{self.turn}/release", {"failed": failed})

    def lines(self) -> list[Told]:
        whole = self.file.read_bytes() if self.file.exists() else b""
        return [Told(*json.loads(line)) for line in whole.splitlines()]

    # -- lives

    async def story(self) -> None:
        """Every POST that there is, once."""
        await self.promote(CALL)
        quick = await self.start(command="echo hello")
        tool = await self.start(tool="noted")
        agent = await self.start(agent="scout", prompt="look")
        asking = await self.start(agent="scout", prompt="ask")
        await self.answer(asking)
        listening = await self.start(
            command=f"read x; echo $x >{shlex.quote(str(self.folder))}/sent", openStdin=True
        )
        sleeps = [await self.start(command="sleep 600", batch=f"of-{n}") for n in range(3)]
        await self.send(listening)
        await self.cancel(sleeps[0])
        await self.cancel(CALL)
        await self.end(quick, tool, agent, asking, listening, sleeps[0], CALL)
        await self.resume(agent)
        await self.end(agent)
        first, *_ = await self.open_turn(2)
        await self.tell(first)
        await self.tell(*await self.go_on())
        await self.release()
        await self.tell_all()
        for task in sleeps[1:]:
            await self.post("/v1/cancel", {"thread": THREAD, "batch": f"of-{sleeps.index(task)}"})
            works.say("cancelled", THREAD, task)
        await self.end(*sleeps)
        await self.open_turn()
        await self.release(failed=True)
        await self.post(f"/v1/threads/{THREAD}/unpark")
        works.say("unparked", THREAD, "")
        await self.tell_all()
        await self.post("/v1/clear", {"thread": THREAD, "ids": [quick]})
        works.say("cleared", THREAD, quick)
        works.say("purging", THREAD, tool)
        await self.post("/v1/purge", {"ids": [tool]})
        works.say("purged", THREAD, tool)
        limits = await self.post("/v1/limits", {"perThread": 3})
        assert limits["perThread"] == 3
        assert (await self.ask("GET", "/v1/info"))[1]["limits"] == limits

    async def tell_all(self) -> None:
        ids = await self.open_turn()
        if ids:
            await self.tell(*ids)
        await self.release()

    async def reopen(self) -> None:
        facts = read_facts(self.folder / "ledger.jsonl")
        acked = {fact.id for fact in facts if fact.what == "acked"}
        problems: list[str] = []
        # A turn that was open when its owner was killed is a failed delivery, and here one of them parks.
        last = [fact.what for fact in facts if fact.what in ("turn", "unparked")][-1:]
        if last == ["unparked"]:
            _, parked = await self.ask("GET", "/v1/notices?state=parked")
            problems += [f"{one['id']} is parked, and was unparked" for one in parked["notices"]]
        cancelled = {fact.id for fact in facts if fact.what == "cancelled"}
        await self._let_go(
            {fact.id.rpartition(".")[0] for fact in facts if fact.what == "attempt"} - cancelled
        )

        async def is_out() -> bool:
            again = [id for id in await self.open_turn() if id in acked]
            problems.extend(f"{id} was acknowledged, and came again" for id in again)
            if self.held:
                await self.tell(*(notice["id"] for notice in self.held))
            await self.release()
            await self.post(f"/v1/threads/{THREAD}/unpark")
            left = (await self.ask("GET", f"/v1/notices?state={UNTOLD}"))[1]["notices"]
            active = (await self.ask("GET", "/v1/tasks?status=running"))[1]["tasks"]
            return not left and not active

        await until_async(is_out, "everything is told")
        problems += [problem async for problem in self._missing(facts)]
        (self.folder / "problems").write_text("\n".join(problems))

    async def _let_go(self, tasks: set[str]) -> None:
        """What would not end by itself, unless somebody cancelled it before."""
        for task in sorted(tasks):
            status, found = await self.ask("GET", f"/v1/tasks/{task}")
            if status == 200 and found["state"] in ("running", "queued"):
                await self.ask("POST", f"/v1/tasks/{task}/cancel")

    async def _missing(self, facts: list[Any]) -> AsyncIterator[str]:
        listed = {task["id"] for task in (await self.ask("GET", "/v1/tasks?limit=200"))[1]["tasks"]}
        for fact in facts:
            status, task = (0, None) if not fact.id else await self.ask("GET", f"/v1/tasks/{fact.id}")
            if fact.what == "sent" and "hello" not in _text(self.folder / "sent"):
                yield f"{fact.id} was sent something, and did not get it"
            elif fact.what == "cancelled" and task["state"] != "cancelled":
                yield f"{fact.id} was cancelled, and is {task['state']}"
            elif fact.what == "answered" and task["question"] is not None:
                yield f"{fact.id} was answered, and waits"
            elif fact.what == "cleared" and (fact.id in listed or status != 200):
                yield f"{fact.id} was cleared, and is listed, or gone ({status})"
            elif fact.what == "purged" and (fact.id in listed or status != 404):
                yield f"{fact.id} was purged, and is there ({status})"
            elif fact.what == "purging" and (fact.id in listed) != (status == 200):
                yield f"{fact.id} was half purged: {status}, and listed is {fact.id in listed}"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def problems(folder: Path) -> Iterator[str]:
    yield from filter(None, _text(folder / "problems").split("\n"))


async def main(mode: str, folder: Path) -> int:
    try:
        listens, gone = folder / "http.sock", folder / "gone"
        await until_async(lambda: listens.exists() or gone.exists(), "the owner listens, or is gone")
        await getattr(Poster(folder), mode)()
    except (OSError, http.client.HTTPException) as problem:
        print(repr(problem), flush=True)
        return GONE
    return 0


if __name__ == "__main__":
    works.watch()
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]))))
