"""A host that is none of ours: plain http.client, a transcript in a file of its own, and bad luck.

It does what docs/reference/http.md tells a host to do, and nothing else: lease, look for each id in the
transcript, store, acknowledge; and send an acknowledgement again that was not answered.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

CUTS = (
    "turn unanswered",  # the connection is cut after the request for a turn
    "dies before storing",  # the host is restarted with a turn in its hands
    "dies before ack",  # the same, when the transcript holds the notices
    "ack unanswered",  # the connection is cut after the ack was written
    "ack half written",  # and in the middle of it
)
OWNER = """
import asyncio, sys
from meantime import Meantime
async def main():
    async with Meantime.open(sys.argv[1] + "/work.db") as mt:
        async with mt.serve(tcp=False, socket=sys.argv[1] + "/http.sock"):
            print("open", flush=True)
            await asyncio.Event().wait()
asyncio.run(main())
"""


class Cut(Exception):
    """The connection is gone, or the host is."""


class Owner:
    """The process that owns the ledger, killed without a word."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-c", OWNER, str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=self._folder)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"open\n"

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("meantime", timeout=2 * LIMIT)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(2 * LIMIT)
        self.sock.connect(self._path)


def post(path: Path, where: str, body: dict[str, Any], *, cut: str = "") -> tuple[int, Any]:
    """`cut` is after the request, or in the middle of its body."""
    data = json.dumps(body).encode()
    connection = UnixConnection(path)
    try:
        connection.putrequest("POST", where)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        connection.send(data[: len(data) // 2] if cut == "half" else data)
        if cut:
            raise Cut(where)
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said else None
    except (OSError, http.client.HTTPException) as problem:
        raise Cut(where) from problem
    finally:
        connection.close()


class Host:
    """What it knows is in its transcript; a restart of it forgets the rest."""

    def __init__(self, folder: Path, thread: str) -> None:
        self._socket = folder / "http.sock"
        self._file = folder / "transcript"
        self._file.touch()
        self._thread = thread

    def transcript(self) -> list[str]:
        return [json.loads(line)["id"] for line in self._file.read_text().splitlines()]

    def turn(self, cut: str = "") -> int:
        """Returns how many it was told. Raises Cut where its luck ends."""
        unheard = "whole" if cut == "turn unanswered" else ""
        status, turn = self._post(f"/v1/threads/{self._thread}/turns", {"lease": 1}, unheard)
        assert status == 201, turn
        if cut == "dies before storing":
            raise Cut(cut)
        known = set(self.transcript())
        for notice in turn["notices"]:
            if notice["id"] not in known:
                self._store(notice)
        if cut == "dies before ack":
            raise Cut(cut)
        ack = f"/v1/turns/{turn['turn']}/ack", {"notices": [notice["id"] for notice in turn["notices"]]}
        if turn["notices"]:
            self._ack(*ack, cut={"ack unanswered": "whole", "ack half written": "half"}.get(cut, ""))
        self._post(f"/v1/turns/{turn['turn']}/release", {})
        return len(turn["notices"])

    def _store(self, notice: dict[str, Any]) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps({"id": notice["id"], "message": notice["message"]}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _ack(self, where: str, body: dict[str, Any], cut: str) -> None:
        try:
            status, answer = self._post(where, body, cut)
        except Cut:
            self.before_again()
            status, answer = self._post(where, body)
        told = status == 200 and answer["told"] == body["notices"]
        assert told or (status, answer["code"]) == (409, "lease_lost"), answer

    def before_again(self) -> None:
        """Where a test restarts the owner between an ack and its repetition."""

    def _post(self, where: str, body: dict[str, Any], cut: str = "") -> tuple[int, Any]:
        return post(self._socket, where, body, cut=cut)

    def until_told(self, count: int) -> None:
        until(
            lambda: self.turn() == 0 and len(self.transcript()) >= count,
            f"{count} notices are told",
            there=self.transcript,
        )
