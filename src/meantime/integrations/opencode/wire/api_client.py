"""The calls that we make to an OpenCode server, in its first API. One client for one server."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from meantime.integrations.opencode.errors import Away, Denied, Unknown
from meantime.system.line_splitter import LineSplitter, LineTooLong

USER = "opencode"
TIMEOUT = httpx.Timeout(30.0, connect=10.0)  # the first call in a folder loads it, which takes seconds
SOON = httpx.Timeout(3.0)
PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # seconds between looks for a server that is away
SILENCE = 25.0  # seconds: a heartbeat comes every 10
SHOWN = 300  # characters of an error
MOST_EVENT = 64 << 20  # bytes of one event


class ApiClient:
    def __init__(self, url: str, password: str = "", *, user: str = USER) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            auth=(user, password) if password else None,
            timeout=TIMEOUT,
            limits=httpx.Limits(max_connections=64),
            trust_env=not _is_here(self.url),  # a proxy of the environment cannot reach this machine
        )

    async def close(self) -> None:
        await self._http.aclose()

    # -- sessions. A server runs each folder apart: `directory` is the session's own.

    async def health(self) -> dict[str, Any]:
        return await self._request("GET", "/global/health", timeout=SOON)

    async def wait(self) -> None:
        """Until it answers, however long that is. A server that is starting never answers requests that came
        too early, so each request is a short one.
        """
        for failures in itertools.count():
            try:
                await self.health()
            except Away:
                await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            else:
                return

    async def create(self, directory: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._request("POST", "/session", directory, body)

    async def sessions(self, directory: str, limit: int) -> list[dict[str, Any]]:
        """The sessions of a folder, the newest first."""
        return await self._request("GET", "/session", directory, limit=limit)

    async def session(self, id: str) -> dict[str, Any]:
        if not id.startswith("ses"):  # which it answers with an error of its own
            raise Unknown(id)
        return await self._request("GET", f"/session/{id}")

    async def children(self, id: str, directory: str) -> list[dict[str, Any]]:
        return await self._request("GET", f"/session/{id}/children", directory)

    async def change(self, id: str, directory: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._request("PATCH", f"/session/{id}", directory, body)

    async def fork(self, id: str, directory: str) -> dict[str, Any]:
        return await self._request("POST", f"/session/{id}/fork", directory, {})

    async def abort(self, id: str, directory: str) -> None:
        await self._request("POST", f"/session/{id}/abort", directory, {})

    async def status(self, directory: str) -> dict[str, dict[str, Any]]:
        """The state of sessions that are busy; one that is not there is idle."""
        return await self._request("GET", "/session/status", directory)

    # -- what is said in them

    async def prompt(self, id: str, directory: str, body: Mapping[str, Any]) -> None:
        """It is taken, and nothing more: whether the turn could begin is seen in the messages."""
        await self._request("POST", f"/session/{id}/prompt_async", directory, body)

    async def note(self, id: str, directory: str, body: Mapping[str, Any]) -> None:
        """Returns when the session holds it. It begins no turn of its own."""
        await self._request("POST", f"/session/{id}/message", directory, {**body, "noReply": True})

    async def message(self, id: str, message: str, directory: str) -> dict[str, Any] | None:
        try:
            return await self._request("GET", f"/session/{id}/message/{message}", directory)
        except Unknown:
            return None

    async def messages(self, id: str, directory: str, limit: int | None = None) -> list[dict[str, Any]]:
        """The newest, in the order in which they came."""
        return await self._request("GET", f"/session/{id}/message", directory, limit=limit)

    # -- what they ask

    async def permissions(self, directory: str) -> list[dict[str, Any]]:
        return await self._request("GET", "/permission", directory)

    async def questions(self, directory: str) -> list[dict[str, Any]]:
        return await self._request("GET", "/question", directory)

    async def permit(self, id: str, directory: str, reply: str, message: str = "") -> None:
        body = {"reply": reply, "message": message} if message else {"reply": reply}
        await self._request("POST", f"/permission/{id}/reply", directory, body)

    async def answer(self, id: str, directory: str, answers: Iterable[Iterable[str]]) -> None:
        body = {"answers": [list(each) for each in answers]}
        await self._request("POST", f"/question/{id}/reply", directory, body)

    async def decline(self, id: str, directory: str) -> None:
        await self._request("POST", f"/question/{id}/reject", directory, {})

    # -- the wire

    async def _request(
        self,
        method: str,
        path: str,
        directory: str = "",
        body: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> Any:
        given = {"directory": directory, "limit": limit}
        params = {name: value for name, value in given.items() if value}
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._http.request(
                method, path, params=params, content=content, headers=headers, timeout=timeout
            )
        except httpx.TransportError as problem:
            raise Away(f"{self.url} does not answer: {problem or type(problem).__name__}.") from None
        if answer.status_code == 404:
            raise Unknown(path)
        if answer.status_code >= 400:
            raise Denied(f"OpenCode refused {method} {path} ({answer.status_code}): {answer.text[:SHOWN]}")
        return msgspec.json.decode(answer.content) if answer.content else None

    @asynccontextmanager
    async def events(self) -> AsyncGenerator[AsyncGenerator[bytes]]:
        """The data of each event, as it comes. Raises Away when it breaks, or is silent for too long."""
        timeout = httpx.Timeout(SILENCE, connect=10.0)
        try:
            async with self._http.stream("GET", "/global/event", timeout=timeout) as answer:
                if answer.status_code != 200:
                    raise Away(f"{self.url} gives no events ({answer.status_code}).")
                yield _data(answer)
        except (httpx.TransportError, LineTooLong) as problem:
            raise Away(f"{self.url} was lost: {problem or type(problem).__name__}.") from None


async def _data(answer: httpx.Response) -> AsyncGenerator[bytes]:
    """By line ends of our own: a line of JSON may hold what others take for one."""
    lines = LineSplitter(MOST_EVENT)
    async for piece in answer.aiter_raw():
        for line in lines.feed(piece):
            if line.startswith(b"data:"):
                yield line[5:].strip()


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
