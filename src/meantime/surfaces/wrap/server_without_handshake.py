"""A server of MCP 2026-07-28, for a host that makes a handshake: each request gets an envelope, a result that
asks for input becomes requests of the server, and subscriptions become one stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from meantime.ports.wrapped_server import ServerFull
from meantime.surfaces.mcp import mcp_tasks

from .protocol_versions import (
    ACKNOWLEDGED,
    LISTEN,
    LISTS_CHANGED,
    LOG_LEVEL,
    WITH_HANDSHAKE,
    envelope_of,
    meta_of,
    with_meta,
)
from .raw_messages import (
    CANCELLED,
    INITIALIZED,
    INTERNAL_ERROR,
    NOTHING,
    UNREADABLE,
    RawMessage,
    answer,
    encoded,
    key,
    notification,
    parts,
    raw,
    read,
    request,
    text,
    value,
)
from .repeated_requests import LEVEL, MOST, SUBSCRIBE, UNSUBSCRIBE
from .tool_answers import SERVER_INFO

ASKS = ("tools/call", "prompts/get", "resources/read")  # whose result may ask for input
INPUT_REQUIRED = b'"input_required"'
MOST_QUESTION = 1 << 20  # bytes of a result that asks
MOST_ROUNDS = 10  # of questions in one request
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25  # seconds before a request is repeated that has nothing to ask


class Round:
    """A request of the host that the server answered with questions."""

    def __init__(self, id: Raw, method: str, params: Raw) -> None:
        self.id = id  # the host's
        self.at_server = id
        self.method = method
        self.params = params
        self.count = 0
        self.pause = FIRST_PAUSE
        self.state = NOTHING
        self.open: dict[str, str] = {}  # ids of questions at the host, and their keys
        self.answers: dict[str, Raw] = {}
        self.timer: asyncio.TimerHandle | None = None


class ServerWithoutHandshake:
    """`to_server` and `to_host` pass a message on."""

    def __init__(
        self, initialize: RawMessage, to_server: Callable[[bytes], None], to_host: Callable[[bytes], bool]
    ) -> None:
        self._to_server = to_server
        self._to_host = to_host
        self._initialize = initialize
        self._envelope = envelope_of(initialize.params)
        self._capabilities: dict[str, Raw] = {}
        self._rounds: dict[int | str, Round] = {}  # requests that may ask, by their id at the server
        self._questions: dict[str, Round] = {}
        self._uris: dict[str, None] = {}
        self._listening = ""  # the id of the stream of changes
        self._count = 0

    def introduce(self, discovered: Raw) -> None:
        """Answers the handshake of the host with the answer to server/discover."""
        said = parts(discovered)
        found = self._capabilities = parts(said.get("capabilities", NOTHING))
        extensions = parts(found.get("extensions", NOTHING))
        extensions.pop(mcp_tasks.EXTENSION, None)  # by this protocol they have another form
        if "extensions" in found:
            found["extensions"] = encoded(extensions)
        info = said.get("serverInfo") or parts(said.get("_meta", NOTHING)).get(SERVER_INFO)
        asked = text(parts(self._initialize.params).get("protocolVersion"))
        result = {
            "protocolVersion": raw(asked if asked in WITH_HANDSHAKE else WITH_HANDSHAKE[-1]),
            "capabilities": encoded(found),
            "serverInfo": info or raw({"name": "server", "version": ""}),
        }
        if "instructions" in said:
            result["instructions"] = said["instructions"]
        self._to_host(answer(self._initialize.id, encoded(result)))

    # -- from the host

    def send(self, line: bytes) -> None:
        (message,) = read(line)  # a line of the session, which is one message
        if not message.method:
            self._answered(message)
        elif message.has_id:
            self._requested(message)
        elif message.method == INITIALIZED:
            self._listen()
        elif message.method == CANCELLED:
            self._cancelled(parts(message.params))

    def _requested(self, message: RawMessage) -> None:
        if message.method in (SUBSCRIBE, UNSUBSCRIBE, LEVEL, "ping"):
            self._note(message)
            self._to_host(answer(message.id, raw({})))
            return
        params = with_meta(message.params, {**meta_of(message.params), **self._envelope})
        number = key(message.id)
        if message.method in ASKS and number is not None:
            self._rounds[number] = Round(message.id.copy(), message.method, params)
        self._to_server(request(message.id, message.method, params))

    def _note(self, message: RawMessage) -> None:
        params = parts(message.params)
        if message.method == LEVEL:
            self._envelope[LOG_LEVEL] = params.get("level", raw("info"))
        elif message.method == SUBSCRIBE:
            self._uris[text(params.get("uri"))] = None
            if len(self._uris) > MOST:
                del self._uris[next(iter(self._uris))]
            self._listen()
        elif message.method == UNSUBSCRIBE:
            self._uris.pop(text(params.get("uri")), None)
            self._listen()

    def _listen(self) -> None:
        """Opens the stream of changes that the server has and the host wants; it ends the former one."""
        found: dict[str, Any] = {
            name: True
            for name in LISTS_CHANGED
            if value(
                parts(self._capabilities.get(name.removesuffix("ListChanged"), NOTHING)).get("listChanged")
            )
        }
        if self._uris:
            found["resourceSubscriptions"] = list(self._uris)
        former, self._listening = self._listening, self._new_id("listen") if found else ""
        if found:
            params = with_meta(raw({"notifications": found}), self._envelope)
            self._to_server(request(raw(self._listening), LISTEN, params))
        if former:
            self._to_server(notification(CANCELLED, raw({"requestId": former})))

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"meantime-{kind}-{self._count}"

    def _cancelled(self, params: dict[str, Raw]) -> None:
        wanted = key(params.get("requestId", NOTHING))
        found = next((one for one in self._rounds.items() if key(one[1].id) == wanted), None)
        if found is not None:
            at_server, round = found
            del self._rounds[at_server]
            self._drop(round)
            if round.open or round.timer is not None:
                return  # the server has answered, and does not know of it any more
            params = {**params, "requestId": round.at_server}
        self._to_server(notification(CANCELLED, encoded(params)))

    def _drop(self, round: Round) -> None:
        if round.timer is not None:
            round.timer.cancel()
        for id in round.open:
            self._questions.pop(id, None)
            self._to_host(notification(CANCELLED, raw({"requestId": id})))

    # -- from the server

    def original(self, id: int | str | None) -> int | str | None:
        """The id of the host for a request that the server will not answer."""
        round = self._rounds.pop(id, None) if id is not None else None
        return key(round.id) if round is not None else id

    def on_line(self, line: bytes) -> bool:
        try:
            messages = read(line)
        except UNREADABLE:
            return False
        for message in messages:
            if message.method == ACKNOWLEDGED:
                continue
            if message.method:
                more = (message.method, message.params)
                self._to_host(request(message.id, *more) if message.has_id else notification(*more))
            else:
                self._replied(message)
        return True

    def _replied(self, message: RawMessage) -> None:
        number = key(message.id) if message.id else None
        if isinstance(number, str) and number == self._listening:
            self._listening = ""
            return
        round = self._rounds.get(number) if number is not None else None
        if round is None:
            self._to_host(answer(message.id, message.result, message.error))
        elif not asks_for_input(message.result):
            self._finish(round, message.result, message.error)
        elif round.count >= MOST_ROUNDS:
            said = f"The server has asked for input {MOST_ROUNDS} times in one request."
            self._finish(round, NOTHING, raw({"code": INTERNAL_ERROR, "message": said}))
        else:
            self._ask(round, parts(message.result))

    def _finish(self, round: Round, result: Raw, error: Raw = NOTHING) -> None:
        number = key(round.at_server)
        if number is not None:
            self._rounds.pop(number, None)
        self._drop(round)
        self._to_host(answer(round.id, result, error))

    def _ask(self, round: Round, result: dict[str, Raw]) -> None:
        round.count += 1
        round.state = result.get("requestState", NOTHING).copy()
        round.answers = {}
        asked = parts(result.get("inputRequests", NOTHING))
        if not asked:
            round.timer = asyncio.get_running_loop().call_later(round.pause, self._repeat, round)
            round.pause = min(LONGEST_PAUSE, 2 * round.pause)
            return
        new = {self._new_id("input"): name for name in asked}
        round.open.update(new)
        for id, name in new.items():
            self._questions[id] = round
            said = parts(asked[name])
            self._to_host(request(raw(id), text(said.get("method")), said.get("params", NOTHING).copy()))

    def _answered(self, message: RawMessage) -> None:
        """By the host."""
        id = key(message.id) if message.id else None
        round = self._questions.pop(id, None) if isinstance(id, str) else None
        if round is None or not isinstance(id, str):
            self._to_server(answer(message.id, message.result, message.error))
            return
        name = round.open.pop(id)
        if message.error:
            self._finish(round, NOTHING, message.error)
            return
        round.answers[name] = message.result.copy()
        if not round.open:
            self._repeat(round)

    def _repeat(self, round: Round) -> None:
        """Asks the server again, with the answers of the host."""
        round.timer = None
        params = parts(round.params)
        params |= {"requestState": round.state} if round.state else {}
        params |= {"inputResponses": encoded(round.answers)} if round.answers else {}
        former, id = key(round.at_server), self._new_id("again")
        if former is not None:
            self._rounds.pop(former, None)
        round.at_server = raw(id)
        self._rounds[id] = round
        try:
            self._to_server(request(round.at_server, round.method, encoded(params)))
        except ServerFull:
            said = "The server has not read what it was sent for long."
            self._finish(round, NOTHING, raw({"code": INTERNAL_ERROR, "message": said}))


def asks_for_input(result: Raw) -> bool:
    if len(memoryview(result)) > MOST_QUESTION or INPUT_REQUIRED not in bytes(result):
        return False
    return text(parts(result).get("resultType")) == "input_required"
