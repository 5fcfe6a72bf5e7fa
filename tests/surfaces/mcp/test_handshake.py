"""What `meantime mcp` answers before the SDK is loaded is the SDK's own answer; or it is left to the SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from tests.waiting import LIMIT

from meantime import Meantime
from meantime.app.ledger_owner import LedgerOwner
from meantime.dialects import names
from meantime.surfaces.mcp.client_conversation import ClientConversation
from meantime.surfaces.mcp.client_sessions import ClientSessions, ClientThread
from meantime.surfaces.mcp.client_thread import instructions
from meantime.surfaces.mcp.handshake import CAPABILITIES, CLIENT, NEWEST, OLDER, VERSION, Handshake
from meantime.surfaces.mcp.stdio_server import StdioTransport
from meantime.testing import FakeSessionRunner, Reply
from meantime.toolset.owner_catalog import OwnerCatalog

from .conftest import QUICK

RAW = {"name": "raw", "version": "1"}
META = {VERSION: NEWEST, CLIENT: RAW, CAPABILITIES: {}}
INITIALIZED = {"method": "notifications/initialized"}
RICH = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {"applyDefaults": True}, "url": {}},
    "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}},
    "experimental": {"a/b": {"c": [1, None]}},
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
}
RICHER = {**RAW, "title": "Raw", "icons": [{"src": "data:,", "sizes": ["any"], "theme": "dark"}]}
WELCOME = {"id": 1, "method": "initialize", "params": {
    "protocolVersion": OLDER[-1], "capabilities": {}, "clientInfo": RAW}}  # fmt: skip


def hello(version: str, **given: Any) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": RAW, **given}
    return {"id": 1, "method": "initialize", "params": params}


def asked(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"id": id, "method": method, "params": params}


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def id_of(answer: dict[str, Any]) -> Any:
    """Of the request that it answers, or acknowledges."""
    return answer["id"] if "id" in answer else answer["params"]["_meta"][SUBSCRIPTION_ID_META_KEY]


def listen(id: Any, **wanted: Any) -> dict[str, Any]:
    return asked(id, "subscriptions/listen", notifications=wanted, _meta=META)


class Served:
    """One conversation, by both: the SDK's server, and the answers that need no SDK."""

    def __init__(self, door: StdioTransport, toolset: dict[str, Any], said: str) -> None:
        self._server = door._tool_server.server
        self._toolset = toolset
        self._said = said

    def handshake(self) -> Handshake:
        return Handshake(self._toolset["version"], self._said, self._toolset["tools"])

    async def sdk(self, lines: Sequence[bytes]) -> dict[Any, Any]:
        """Its answers by id; every request must have one of its own."""
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](100)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](100)
        found: dict[Any, Any] = {}
        async with asyncio.timeout(LIMIT), anyio.create_task_group() as group:
            options = self._server.create_initialization_options()
            group.start_soon(self._server.run, from_client, to_client, options)
            for one in lines:
                try:
                    message = types.jsonrpc_message_adapter.validate_json(one, by_name=False)
                except ValueError:
                    continue
                await to_server.send(SessionMessage(message))
                if isinstance(message, types.JSONRPCRequest):
                    said = (await from_server.receive()).message
                    whole = json.loads(said.model_dump_json(by_alias=True, exclude_unset=True))
                    found[id_of(whole)] = whole
            to_server.close()
            group.cancel_scope.cancel()
        from_server.close()
        return found

    async def compare(self, messages: Sequence[dict[str, Any]]) -> list[Any]:
        """The ids that are answered without the SDK, each with the SDK's own answer."""
        lines = [line(message) for message in messages]
        handshake = self.handshake()
        early = [answer for one in lines if (answer := handshake.answer(one))]
        theirs = await self.sdk(lines)
        for answer in early:
            whole = json.loads(answer)
            assert whole == theirs[id_of(whole)]
        return [id_of(json.loads(answer)) for answer in early]


@asynccontextmanager
async def serving(mt: Meantime) -> AsyncIterator[Callable[..., Awaitable[Served]]]:
    """What makes a conversation in one dialect; all of them are closed at the end."""
    tasks, opened = mt._runtime, list[ClientSessions]()
    works = OwnerCatalog(tasks, LedgerOwner(mt._owner.about))

    async def serve(dialect: str = "meantime", *, by_session: bool = False, said: bool = False) -> Served:
        whose = ClientThread("conv-1", said, by_session, lambda threads: None)
        sessions = ClientSessions(
            lambda thread: ClientConversation(tasks, works, thread, dialect=dialect), whose
        )
        opened.append(sessions)
        given = {"dialect": dialect, "bySession": "true" if by_session else "false"}
        toolset = (await http.get("/v1/toolset", params=given)).raise_for_status().json()
        door = StdioTransport(sessions, toolset["version"], await sessions.own.toolset.guidance())
        text = instructions(toolset["guidance"], "conv-1", said=said, by_argument=by_session)
        return Served(door, toolset, text)

    async with mt.serve(port=0) as door, httpx.AsyncClient(base_url=door.url, timeout=LIMIT) as http:
        yield serve
    for sessions in opened:
        await sessions.close()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with Meantime.open(tmp_path / "work.db", settings=QUICK) as mt, serving(mt) as serve:
        yield await serve()


@pytest.mark.breadth
@pytest.mark.anyio
@pytest.mark.parametrize("agents", [False, True], ids=["no agents", "agents"])
async def test_every_version_in_every_dialect_is_answered_as_the_sdk_does(tmp_path: Path, agents: bool):
    runners = [FakeSessionRunner({"explore": Reply("found it")})] if agents else []
    async with (
        Meantime.open(tmp_path / "work.db", settings=QUICK, runners=runners) as mt,
        serving(mt) as serve,
    ):
        for dialect in names():
            for by_session, said in ((False, False), (True, False), (True, True)):
                served = await serve(dialect, by_session=by_session, said=said)
                newest = [asked(1, "server/discover", _meta=META), asked("two", "tools/list", _meta=META)]
                assert await served.compare(newest) == [1, "two"]
                for version in OLDER:
                    talk = [hello(version), INITIALIZED, asked("two", "tools/list"), asked(3, "ping")]
                    assert await served.compare(talk) == [1, "two", 3]


def test_the_versions_are_those_of_the_sdk():
    assert OLDER == HANDSHAKE_PROTOCOL_VERSIONS
    assert (NEWEST,) == MODERN_PROTOCOL_VERSIONS


GOOD: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "all that a client can": ([hello(OLDER[-1], capabilities=RICH, clientInfo=RICHER)], [1]),
    "capabilities that nobody knows": ([hello(OLDER[0], capabilities={"new": 7})], [1]),
    "ping before anything": ([asked(0, "ping"), WELCOME, asked(2, "tools/list")], [0, 1, 2]),
    "tools before it says that it is ready": ([WELCOME, asked(2, "tools/list", cursor="x")], [1, 2]),
    "tools twice": ([WELCOME, asked(2, "tools/list"), asked(3, "tools/list")], [1, 2, 3]),
    "a token for progress": ([WELCOME, asked(2, "tools/list", _meta={"progressToken": "p"})], [1, 2]),
    "tools at once, by the newest": ([asked(1, "tools/list", _meta={**META, CLIENT: RICHER})], [1]),
    "no name, by the newest": ([asked(1, "tools/list", _meta={VERSION: NEWEST, CAPABILITIES: RICH})], [1]),
    "a stream for lists": (
        [
            asked(1, "server/discover", _meta=META),
            listen("l", toolsListChanged=True, resourcesListChanged=False),
        ],
        [1, "l"],
    ),
    "tools after something that is left": (
        [WELCOME, asked(2, "resources/list"), {"method": "notifications/x"}, asked(3, "tools/list")],
        [1, 3],
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", GOOD)
async def test_what_a_client_may_say_is_answered(served: Served, name: str):
    messages, answered = GOOD[name]
    assert await served.compare(messages) == answered


LEFT: dict[str, list[dict[str, Any]]] = {
    "a version that nobody knows": [hello("2099-01-01")],
    "the newest version in a handshake": [hello(NEWEST)],
    "a version that is not a text": [hello(7)],  # type: ignore[arg-type]
    "no client": [asked(1, "initialize", protocolVersion=OLDER[-1], capabilities={})],
    "no parameters": [{"id": 1, "method": "initialize"}],
    "a client without a version": [hello(OLDER[-1], clientInfo={"name": "raw"})],
    "a client's icon without an address": [hello(OLDER[-1], clientInfo={**RAW, "icons": [{}]})],
    "capabilities as a list": [hello(OLDER[-1], capabilities=[])],
    "a capability that is not an object": [hello(OLDER[-1], capabilities={"sampling": True})],
    "a part of one that is not an object": [hello(OLDER[-1], capabilities={"elicitation": {"form": 7}})],
    "a part of a part": [hello(OLDER[-1], capabilities={"tasks": {"requests": {"sampling": {"x": 7}}}})],
    "a capability that is null": [hello(OLDER[-1], capabilities={"sampling": None})],
    "roots that change perhaps": [hello(OLDER[-1], capabilities={"roots": {"listChanged": 2}})],
    "_meta as a list": [hello(OLDER[-1], _meta=[])],
    "an odd token": [hello(OLDER[-1], _meta={"progressToken": [1]})],
    "an envelope on a handshake": [hello(OLDER[-1], _meta=META)],
    "tools before the handshake": [asked(1, "tools/list"), asked(2, "ping")],
    "discover without an envelope": [asked(1, "server/discover")],
    "discover by another version": [asked(1, "server/discover", _meta={**META, VERSION: "2099-01-01"})],
    "an envelope without capabilities": [asked(1, "tools/list", _meta={VERSION: NEWEST})],
    "a level for logs": [asked(1, "tools/list", _meta={**META, "io.modelcontextprotocol/logLevel": "x"})],
    "a stream for a resource": [listen(1, resourceSubscriptions=["task://inbox"])],
    "a stream for tasks": [listen(1, taskIds=[])],
    "a stream for perhaps": [listen(1, toolsListChanged="yes")],
    "a stream by an older version": [asked(1, "subscriptions/listen", notifications={})],
    "ping by the newest": [asked(1, "ping", _meta=META)],
    "an id that is no id": [{**WELCOME, "id": 1.5}],
    "an id that is null": [{**WELCOME, "id": None}],
    "more than a request has": [{**WELCOME, "more": 1}],
    "ready before the handshake": [INITIALIZED, WELCOME],
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_odd_is_left_to_the_sdk(name: str):
    handshake = Handshake("1", "", [])
    assert [handshake.answer(line(message)) for message in LEFT[name]] == [None] * len(LEFT[name])
    assert handshake.replay == []


@pytest.mark.parametrize(
    "odd",
    [
        b"what?\n",
        b"[]\n",
        b"[" + line(WELCOME).strip() + b"]\n",  # a batch
        b"\xff\xfe\n",
        b"\xef\xbb\xbf" + line(WELCOME),
        line(WELCOME).replace(b'"raw"', b'"\\ud800"'),
        line(WELCOME).replace(b'"capabilities": {}', b'"capabilities": {"experimental": {"a": {"b": NaN}}}'),
        line(WELCOME).replace(b'"id": 1', b'"id": 1, "id": 2'),
        b"[" * 10_000 + b"\n",
        b'{"a":' * 10_000 + b"\n",
        line({**WELCOME, "params": {**WELCOME["params"], "x": "y" * 40_000}}),
    ],
    ids=lambda odd: odd[:30],
)
def test_a_line_that_two_parsers_could_read_differently_is_left(odd: bytes):
    handshake = Handshake("1", "", [])
    assert handshake.answer(odd) is None
    assert handshake.answer(line(WELCOME)) is None, "the SDK has the connection from there"


@pytest.mark.anyio
async def test_eras_are_not_mixed_and_nothing_is_said_twice(served: Served):
    assert await served.compare([WELCOME, {**WELCOME, "id": 2}, asked(3, "tools/list")]) == [1]
    assert await served.compare([WELCOME, asked(2, "tools/list", _meta=META)]) == [1]
    newest = asked(1, "server/discover", _meta=META)
    assert await served.compare([newest, {**WELCOME, "id": 2}, asked(3, "tools/list", _meta=META)]) == [1]
    assert await served.compare([newest, asked(2, "tools/list"), asked(3, "tools/list", _meta=META)]) == [
        1,
        3,
    ]


@pytest.mark.anyio
async def test_what_is_replayed_brings_the_sdks_server_where_the_client_stands(served: Served):
    """Whatever was answered early, the next request is answered as if the SDK had heard everything."""
    for talk in (
        [asked(0, "ping"), WELCOME, INITIALIZED, asked(2, "tools/list")],
        [asked(1, "server/discover", _meta=META), asked(2, "tools/list", _meta=META)],
        [asked(2, "tools/list", _meta=META)],
        [listen("l", toolsListChanged=True), asked(2, "tools/list", _meta=META)],
    ):
        handshake = served.handshake()
        for message in talk:
            assert handshake.answer(line(message)) is not None
        given = {"_meta": META} if "_meta" in talk[-1]["params"] else {}
        last = line(asked(9, "tools/call", name="list", arguments={}, **given))
        whole = (await served.sdk([*map(line, talk), last]))[9]
        assert (await served.sdk([*handshake.replay, last]))[9] == whole
        assert "result" in whole


# -- whatever a client may say

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "dark", "any", OLDER[0]])
KEYS = st.sampled_from(
    ["roots", "listChanged", "sampling", "tools", "elicitation", "form", "tasks", "requests", "create",
     "experimental", "extensions", "name", "version", "title", "icons", "src", "sizes", "theme", "x"]
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inside: st.lists(inside, max_size=2) | st.dictionaries(KEYS, inside, max_size=3)
)
CLIENTS = st.dictionaries(KEYS, ANYTHING, max_size=4).map(lambda more: {**RAW, **more})
PARTS = st.dictionaries(KEYS, st.just({}) | ANYTHING, min_size=1, max_size=2)
DEEP = st.fixed_dictionaries({"requests": st.dictionaries(KEYS, PARTS, min_size=1, max_size=2)})
ABLE = st.one_of(
    st.dictionaries(KEYS, ANYTHING, max_size=2),
    st.fixed_dictionaries({"roots": st.fixed_dictionaries({"listChanged": ANYTHING})}),
    st.fixed_dictionaries({"tasks": PARTS | DEEP}),
    *(
        st.fixed_dictionaries({name: PARTS})
        for name in ("sampling", "elicitation", "experimental", "extensions")
    ),
)
ODD = st.one_of(  # one at a time: otherwise hardly any would be accepted
    st.tuples(CLIENTS, st.just({}), st.just({})),
    st.tuples(st.just(RAW), ABLE, st.just({})),
    st.tuples(st.just(RAW), st.just({}), st.dictionaries(st.just("progressToken"), ANYTHING)),
)


@pytest.mark.breadth
@given(odd=ODD)
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_nothing_is_answered_that_the_sdk_refuses(odd: tuple[Any, Any, Any]):
    """Validation alone, without a server: so there is time for many."""
    client, able, meta = odd
    params = {"protocolVersion": OLDER[-1], "capabilities": able, "clientInfo": client, "_meta": meta}
    if Handshake("1", "", []).answer(line(asked(1, "initialize", **params))):
        methods.validate_client_request("initialize", OLDER[-1], params)
        types.InitializeRequestParams.model_validate(params, by_name=False)
    envelope = {"_meta": {**META, CLIENT: client, CAPABILITIES: able, **meta}}
    if Handshake("1", "", []).answer(line(asked(1, "tools/list", **envelope))):
        methods.validate_client_request("tools/list", NEWEST, envelope)
        types.PaginatedRequestParams.model_validate(envelope, by_name=False)
