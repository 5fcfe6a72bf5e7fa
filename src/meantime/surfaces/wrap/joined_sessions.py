"""Several servers behind one wrap (`--prefix`): each has a session of its own, and the host sees one server.

A request for one server goes to its session under the host's own id. A request for all, or for whichever
knows, is gathered here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Raw
from msgspec.structs import replace

from meantime.surfaces.mcp.notice_delivery import NoticeDelivery

from .host_conversations import HostConversations
from .host_session import HostSession
from .joined_answers import LISTS, SEPARATOR, items_of, joined_introduction, joined_items
from .raw_messages import (
    CANCELLED,
    INVALID_PARAMS,
    NOTHING,
    PARSE_ERROR,
    UNREADABLE,
    RawMessage,
    answer,
    encoded,
    key,
    notification,
    parts,
    raw,
    read,
    refusal,
    request,
    text,
)
from .task_offers import DISCOVER, INITIALIZE
from .wrap_hello import WrapHello, WrapParts

MOST_SERVERS = 50
MOST_PAGES = 100  # of one list of one server
MOST_GATHERED = 1_000  # requests at once
MOST_URIS = 10_000  # whose server is known
NAMED = ("tools/call", "prompts/get")
BY_URI = ("resources/read", "resources/subscribe", "resources/unsubscribe")
URI_NAMES = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}


class Gathering:
    """A request of the host that several servers answer. `is_search`: one after the other, until one does."""

    def __init__(self, message: RawMessage, asked: list[str], *, is_search: bool) -> None:
        self.message = message
        self.open = asked  # servers that have not answered
        self.is_search = is_search
        self.pages: list[tuple[str, Raw]] = []
        self.told: list[tuple[str, RawMessage]] = []
        self.refused: RawMessage | None = None


class JoinedSessions:
    """To a link what a HostSession is. `hello.order.words` names the servers: `name`, or `name=URL`."""

    def __init__(
        self, shared: WrapParts, hello: WrapHello, send: Callable[[bytes, Raw | None], bool]
    ) -> None:
        self._send = send
        self._version = hello.version
        self._inboxes: dict[str, NoticeDelivery] = {}  # one for all: what one told, another need not
        self.conversations = HostConversations(shared, hello)
        self._sessions: dict[str, HostSession] = {}
        self._with_url: list[HostSession] = []
        for word in hello.order.words[:MOST_SERVERS]:
            name, _, address = word.partition("=")
            order = replace(hello.order, words=(address or name,), is_command=False)
            tell = partial(self._told, len(self._sessions), name)
            own = replace(hello, order=order)
            self._sessions[name] = HostSession(
                shared, own, tell, self._inboxes, conversations=self.conversations
            )
            if address:
                self._with_url.append(self._sessions[name])
        self._names = list(self._sessions)
        self._gathered: dict[int | str, Gathering] = {}  # by the host's id
        self._uris: dict[str, str] = {}  # the server of each
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for session in self._sessions.values():
            session.closed.add_done_callback(self._one_closed)

    # -- as a session

    def pause(self, paused: bool) -> None:
        for session in self._sessions.values():
            session.pause(paused)

    def on_login(self, authorization: str) -> None:
        """A configured server has a login of its own."""
        for session in self._with_url:
            session.on_login(authorization)

    async def on_host_end(self) -> None:
        await asyncio.gather(*(session.on_host_end() for session in self._sessions.values()))

    def on_host_gone(self) -> None:
        for session in self._sessions.values():
            session.on_host_gone()

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions.values()))

    def _one_closed(self, _: object) -> None:
        if not self.closed.done() and all(session.closed.done() for session in self._sessions.values()):
            self.closed.set_result(None)

    # -- from the host

    def on_host_line(self, line: bytes) -> None:
        try:
            messages = read(line)
        except UNREADABLE as problem:
            self._send(refusal(b"null", PARSE_ERROR, f"This line is not JSON-RPC: {problem}"), None)
            return
        for message in messages:
            if not message.method:
                self._answered(message)
            elif message.has_id and key(message.id) is not None:
                self._requested(message)
            else:
                self._notified(message)

    def _answered(self, message: RawMessage) -> None:
        number = key(message.id)
        if isinstance(number, int) and number >= 0:
            number, at = divmod(number, len(self._names))
            self._sessions[self._names[at]].take(replace(message, id=raw(number)))

    def _notified(self, message: RawMessage) -> None:
        if message.method == CANCELLED:
            id = key(parts(message.params).get("requestId", NOTHING))
            if id is not None:
                self._gathered.pop(id, None)
        for session in self._sessions.values():
            session.take(message)

    def _requested(self, message: RawMessage) -> None:
        params = parts(message.params)
        if message.method == "ping":
            self._send(answer(message.id, raw({})), message.id)
        elif message.method in NAMED:
            self._call(message, params)
        elif message.method in BY_URI and text(params.get("uri")) in self._uris:
            self._sessions[self._uris[text(params.get("uri"))]].take(message)
        elif message.method == "completion/complete":
            self._complete(message, params)
        elif message.method in (INITIALIZE, DISCOVER, "logging/setLevel", *LISTS):
            self._gather(message, is_search=False)
        else:
            self._gather(message, is_search=True)

    def _call(self, message: RawMessage, params: dict[str, Raw]) -> None:
        server, _, name = text(params.get("name")).partition(SEPARATOR)
        if server not in self._sessions:
            self._send(refusal(message.id, INVALID_PARAMS, self._unknown(server)), message.id)
            return
        given = encoded({**params, "name": raw(name)})
        self._sessions[server].take(replace(message, params=given))

    def _complete(self, message: RawMessage, params: dict[str, Raw]) -> None:
        ref = parts(params.get("ref", NOTHING))
        server, found, name = text(ref.get("name")).partition(SEPARATOR)
        if found and server in self._sessions:
            given = encoded({**params, "ref": encoded({**ref, "name": raw(name)})})
            self._sessions[server].take(replace(message, params=given))
        elif text(ref.get("uri")) in self._uris:
            self._sessions[self._uris[text(ref.get("uri"))]].take(message)
        else:
            self._gather(message, is_search=True)

    def _unknown(self, server: str) -> str:
        return f"There is no server {server[:64]!r} behind this wrap. There are: {', '.join(self._names)}."

    # -- requests for several

    def _gather(self, message: RawMessage, *, is_search: bool) -> None:
        id = key(message.id)
        if len(self._gathered) >= MOST_GATHERED or id is None or id in self._gathered:
            said = f"{MOST_GATHERED} requests are open, or one with this id."
            self._send(refusal(message.id, INVALID_PARAMS, said), message.id)
            return
        self._gathered[id] = Gathering(message, list(self._names), is_search=is_search)
        for name in self._names[:1] if is_search else self._names:
            self._sessions[name].take(message)

    def _told(self, at: int, name: str, data: bytes, answers: Raw | None) -> bool:
        """A session has something for the host. False: the host is gone."""
        gathering = self._gathered.get(_id(answers)) if answers is not None else None
        if gathering is not None and name in gathering.open:
            (message,) = read(data)
            self._take_answer(gathering, name, message)
            return True
        return self._send(self._with_own_id(at, data) if answers is None else data, answers)

    def _with_own_id(self, at: int, data: bytes) -> bytes:
        """A server's request, or its cancellation: ids of two servers are apart at the host."""
        (message,) = read(data)
        if message.has_id and message.method:
            number = key(message.id)
            assert isinstance(number, int)
            return request(b"%d" % (number * len(self._names) + at), message.method, message.params)
        if message.method == CANCELLED:
            params = parts(message.params)
            number = key(params.get("requestId", NOTHING))
            if isinstance(number, int):
                own = raw(number * len(self._names) + at)
                return notification(CANCELLED, encoded({**params, "requestId": own}))
        return data

    def _take_answer(self, gathering: Gathering, name: str, message: RawMessage) -> None:
        method = gathering.message.method
        if message.error:
            gathering.refused = gathering.refused or message
        else:
            gathering.told.append((name, message))
            if method in LISTS:
                self._note_uris(method, name, message.result)
                gathering.pages.append((name, message.result))
                if self._next_page(gathering, name, message.result):
                    return
        gathering.open.remove(name)
        if gathering.is_search and not gathering.told and gathering.open:
            self._sessions[gathering.open[0]].take(gathering.message)
        elif gathering.is_search or not gathering.open:
            self._finish(gathering)

    def _next_page(self, gathering: Gathering, name: str, page: Raw) -> bool:
        cursor = parts(page).get("nextCursor")
        pages = sum(one == name for one, _ in gathering.pages)
        if cursor is None or not text(cursor) or pages >= MOST_PAGES:
            return False
        params = encoded({**parts(gathering.message.params), "cursor": cursor})
        self._sessions[name].take(replace(gathering.message, params=params))
        return True

    def _note_uris(self, method: str, name: str, page: Raw) -> None:
        member = URI_NAMES.get(method)
        for one in items_of(method, page) if member else ():
            self._uris[text(one.get(member or ""))] = name
            if len(self._uris) > MOST_URIS:
                del self._uris[next(iter(self._uris))]

    def _finish(self, gathering: Gathering) -> None:
        message, method = gathering.message, gathering.message.method
        id = key(message.id)
        if id is not None:
            self._gathered.pop(id, None)
        if not gathering.told:
            error = gathering.refused.error if gathering.refused is not None else NOTHING
            self._send(answer(message.id, NOTHING, error), message.id)
            return
        order = {name: at for at, name in enumerate(self._names)}
        gathering.told.sort(key=lambda one: order[one[0]])
        gathering.pages.sort(key=lambda one: order[one[0]])  # pages of one server stay in their order
        result = gathering.told[0][1].result
        if method in LISTS:
            result = joined_items(method, gathering.pages)
        elif method in (INITIALIZE, DISCOVER):
            result = joined_introduction(method, gathering.told, self._version)
        self._send(answer(message.id, result), message.id)


def _id(raw_id: Raw) -> int | str:
    found = key(raw_id)
    return found if found is not None else ""
