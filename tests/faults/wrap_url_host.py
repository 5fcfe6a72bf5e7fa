"""A host that reaches its wrapped server by a URL, as a process that can be killed. It writes down what it
reads.

    python -m tests.faults.wrap_url_host <folder> <threshold>

Each line of its stdin is the name of a tool to call: each call is a request of HTTP with a connection of its
own. If there is no daemon, or another one, it begins a new session. It leaves when its stdin ends. Ids begin
at 1 in every life.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

from .wrap_host import HELLO, take
from .wrap_ledger import THREAD, note

BEGIN_AGAIN = (401, 403, 404, 421)  # a new daemon, or somebody else at the port of an old one


class NotTaken(Exception):
    """The request was certainly not taken: it may be sent again."""


class UrlHost:
    def __init__(self, folder: Path, threshold: str) -> None:
        self.folder = folder
        self._query = f"?thread={THREAD}&threshold={threshold}"
        self._session = ""
        self._beginning = threading.Lock()
        self.marks: dict[int, str] = {}

    def call(self, number: int, tool: str) -> None:
        """Every other call asks for progress, so that its answer comes on a stream."""
        params: dict[str, Any] = {"name": tool, "arguments": {}}
        if number % 2:
            params["_meta"] = {"progressToken": number}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        try:
            for line in self._posted(message):
                take(self.folder, line, self.marks)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            note(self.folder, "error", self.marks[number], f"The connection broke: {problem!r}")

    def _posted(self, message: dict[str, Any]) -> list[bytes]:
        def posted() -> list[bytes] | None:
            session = self._begun()
            try:
                response = self._request("POST", message, session)
                return list(_answers(response, message["id"]))
            except NotTaken:
                with self._beginning:
                    self._session = "" if self._session == session else self._session
                return None

        return until(posted, "somebody takes the request")

    def _begun(self) -> str:
        with self._beginning:
            if not self._session:
                self._session = until(self._new_session, "a daemon is there")
            return self._session

    def _new_session(self) -> str:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
        try:
            response = self._request("POST", hello, "")
            response.read()
            session = response.headers["mcp-session-id"]
            self._request("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        except (NotTaken, OSError, http.client.HTTPException):
            return ""
        return session

    def _request(self, method: str, message: Any, session: str) -> http.client.HTTPResponse:
        home = self.folder / "home"
        try:
            port = json.loads((home / "server.json").read_bytes())["port"]
            token = (home / "token").read_text().strip()
            talk = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            talk.connect()
        except (OSError, ValueError) as problem:
            raise NotTaken from problem
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            **({"mcp-session-id": session} if session else {}),
        }
        talk.request(method, f"/mcp/wrap/wrapped{self._query}", json.dumps(message), headers)
        response = talk.getresponse()
        if response.status in BEGIN_AGAIN:
            raise NotTaken
        return response

    def leave(self) -> None:
        if self._session:
            self._request("DELETE", None, self._session).read()


def _answers(response: http.client.HTTPResponse, id: int) -> Iterator[bytes]:
    """Each answer of a response; it has one, unless it breaks off."""
    body = response.read()
    if response.status != 200:
        raise ValueError(f"{response.status}: {body!r}")
    is_stream = response.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")] if is_stream else [body]
    found = [line for line in lines if line and "method" not in json.loads(line)]
    if not found:
        raise http.client.IncompleteRead(body)
    yield from found


def main() -> None:
    folder, threshold = Path(sys.argv[1]), sys.argv[2]
    host = UrlHost(folder, threshold)
    host._begun()
    note(folder, "greeted", str(os.getpid()))
    calls: list[threading.Thread] = []
    for number, line in enumerate(sys.stdin, 1):
        tool = line.strip()
        host.marks[number] = tool.partition("-")[2]
        note(folder, "sent", host.marks[number])
        calls.append(threading.Thread(target=host.call, args=(number, tool), daemon=True))
        calls[-1].start()
    for one in calls:
        one.join(LIMIT)
    host.leave()


if __name__ == "__main__":
    main()
