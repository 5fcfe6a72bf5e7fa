"""Requests of a wrapped server that its host has not answered: sampling, roots, elicitation, ping."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from .held_server import HeldServer
from .raw_messages import (
    CANCELLED,
    INTERNAL_ERROR,
    NOTHING,
    RawMessage,
    answer,
    encoded,
    key,
    notification,
    parts,
    raw,
    refusal,
    request,
)

MOST_ASKED = 10_000
NO_CLIENT = "The client is not there any more."


class ServerRequests:
    """`tell` passes a message on to the host; `number` gives an id that the host has not seen."""

    def __init__(self, server: HeldServer, tell: Callable[[bytes], None], number: Callable[[], int]) -> None:
        self._server = server
        self._tell = tell
        self._number = number
        self._asked: dict[int, Raw] = {}  # the server's ids, by those at the host

    def ask(self, message: RawMessage, *, host_left: bool) -> None:
        if host_left or len(self._asked) >= MOST_ASKED:
            self._refuse(message)
            return
        number = self._number()
        self._asked[number] = message.id
        self._tell(request(b"%d" % number, message.method, message.params))

    def answered(self, message: RawMessage) -> None:
        """By the host."""
        number = key(message.id)
        asked = self._asked.pop(number, None) if isinstance(number, int) else None
        if asked is not None and self._server.is_there:
            self._server.send(answer(asked, message.result, message.error))

    def cancelled(self, params: Raw) -> None:
        """By the server."""
        wanted = parts(params)
        id = bytes(wanted.get("requestId", b""))
        number = next((one for one, asked in self._asked.items() if bytes(asked) == id), None)
        if number is not None:
            del self._asked[number]
            self._tell(notification(CANCELLED, encoded({**wanted, "requestId": raw(number)})))

    def server_gone(self) -> None:
        asked, self._asked = list(self._asked), {}
        for number in asked:
            self._tell(notification(CANCELLED, raw({"requestId": number})))

    def host_gone(self) -> None:
        asked, self._asked = list(self._asked.values()), {}
        for id in asked:
            self._server.send(refusal(id, INTERNAL_ERROR, NO_CLIENT))

    def reply(self, id: Raw, result: Raw) -> None:
        """In place of the host."""
        if self._server.is_there:
            self._server.send(answer(id, result, NOTHING))

    def _refuse(self, message: RawMessage) -> None:
        if message.method == "ping":
            self.reply(message.id, raw({}))
        else:
            self._server.send(refusal(message.id, INTERNAL_ERROR, NO_CLIENT))
