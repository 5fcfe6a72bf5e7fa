"""Hosts that take a URL: configured servers behind a wrap on the daemon's HTTP server."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.stdio import StdioServerParameters
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl
from tests.waiting import LIMIT, until

from daemon.conftest import Place, place_in
from meantime.ports.wrapped_server import LoginChallenge, WrapOrder
from meantime.surfaces.wrap.http_reply import MOST_UNSENT, MOST_UNSENT_BYTES, UnsentMessages
from meantime.surfaces.wrap.negotiated_server import NegotiatedServer
from meantime.surfaces.wrap.raw_messages import raw, request

from .conftest import NEVER_SOON, RICH_SERVER, SECRET, SOON, Peer, lives
from .test_same_answers import answers, assert_the_same

pytestmark = pytest.mark.breadth

PREFIX = "io.modelcontextprotocol/"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "url", "version": "1"}}
VERSIONED = Path(__file__).with_name("versioned_server.py")


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    made = Peer(tmp_path_factory.mktemp("peer"))
    yield made
    made.open_gate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, peer: Peer, guard: str) -> Iterator[Place]:
    servers = {
        "scripted": {"command": peer.command("taskless")},
        "rich": {"command": [sys.executable, str(RICH_SERVER), "stdio"]},
        "guard": {"url": guard},
        "changing": {"command": [sys.executable, str(VERSIONED), "2026-07-28", str(peer.folder / "log")]},
    }
    tables = "".join(
        f"[mcp.servers.{name}]\n" + "".join(f"{key} = {json.dumps(said)}\n" for key, said in one.items())
        for name, one in servers.items()
    )
    with place_in(tmp_path_factory.mktemp("served")) as made:
        made.configure(
            f"[http]\nport = 0\n[mcp]\nwrap_threshold = {NEVER_SOON}\n"
            f'wrap_thresholds = {{ rich = -1, "scripted/gate" = {SOON} }}\n{tables}'
        )
        made.up()
        yield made


def token_of(at: Place) -> str:
    return (at.home.folder / "token").read_text().strip()


def port_of(at: Place) -> int:
    return json.loads((at.home.folder / "server.json").read_text())["port"]


class UrlHost:
    """A host that knows a URL. `login` is a token for the server itself."""

    def __init__(self, at: Place, name: str, *, thread: str = "", login: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port_of(at), timeout=LIMIT)
        query = f"?thread={thread}" if thread else ""
        self.path = f"/mcp/wrap/{name}{query}"
        self.headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if login:
            self.path = f"/~{token_of(at)}{self.path}"
            self.headers["authorization"] = f"Bearer {login}"
        else:
            self.headers["authorization"] = f"Bearer {token_of(at)}"
        self._count = 0

    def request(self, method: str, body: Any = None) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, self.path, data, self.headers)
        return self._connection.getresponse()

    def post(self, method: str, params: dict[str, Any] | None = None) -> http.client.HTTPResponse:
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params or {}}
        return self.request("POST", message)

    def begin(self) -> UrlHost:
        response = self.post("initialize", HELLO)
        said = response.read()
        assert response.status == 200, said
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        response = self.request("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (response.status, response.read()) == (202, b"")
        return self

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer, whether it comes as JSON or at the end of a stream."""
        *_, last = messages_of(self.post(method, params))
        assert last["id"] == self._count
        return last

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def messages_of(response: http.client.HTTPResponse) -> list[dict[str, Any]]:
    body = response.read()
    assert response.status == 200, body
    if response.headers["content-type"] == "application/json":
        return [json.loads(body)]
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]


def status_of(response: http.client.HTTPResponse) -> tuple[int, str]:
    return response.status, json.loads(response.read())["code"]


def test_a_session_over_http_has_a_server_of_its_own(served: Place, peer: Peer):
    before = len(peer.pids)
    first, second = UrlHost(served, "scripted").begin(), UrlHost(served, "scripted").begin()
    assert first.call("echo", mark="1")["result"]["content"]
    assert second.call("echo", mark="2")["result"]["content"]
    ours = peer.pids[before:]
    assert len(set(ours)) == 2
    response = first.request("DELETE")
    assert (response.status, response.read()) == (204, b"")
    until(lambda: not lives(ours[0]), "its server ends with the session")
    assert status_of(first.post("tools/list")) == (404, "no_session")
    assert lives(ours[1])
    second.request("DELETE").read()


def test_a_slow_call_over_http_becomes_a_task_of_its_conversation(served: Place, peer: Peer):
    host = UrlHost(served, "scripted", thread="over-http").begin()
    params = {"name": "gate", "arguments": {"mark": "slow"}, "_meta": {"progressToken": "mine"}}
    progress, answer = messages_of(host.post("tools/call", params))
    assert progress["params"] == {
        "progressToken": "mine",
        "progress": 1,
        "total": 4,
        "message": "at the gate",
    }
    task = answer["result"]["_meta"]["meantime/task"]
    (listed,) = served.ask("GET", "/v1/tasks?thread=over-http")["tasks"]
    assert listed["id"] == task
    peer.open_gate()
    assert served.wait(task)["state"] == "completed"
    told = "".join(block["text"] for block in host.call("echo")["result"]["content"])
    assert task in told
    (peer.folder / "gate").unlink()
    host.request("DELETE").read()


def test_a_call_whose_host_over_http_vanishes_is_told_as_a_task(served: Place, peer: Peer):
    host = UrlHost(served, "scripted", thread="vanished").begin()
    data = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "gate", "arguments": {"mark": "v"}},
        }
    )
    host._connection.request("POST", host.path, data, host.headers)  # pyright: ignore[reportPrivateUsage]
    peer.until("waiting", "v")
    host._connection.close()  # pyright: ignore[reportPrivateUsage]
    peer.open_gate()
    listed = lambda: served.ask("GET", "/v1/tasks?thread=vanished")["tasks"]  # noqa: E731
    until(lambda: [one["state"] for one in listed()] == ["completed"], "it is a task")
    (peer.folder / "gate").unlink()


def test_a_cancelled_call_ends_its_request_of_http(served: Place, peer: Peer):
    host = UrlHost(served, "scripted")
    host.path += "?threshold=-1"
    host.begin()
    cancels = len(peer.lines("cancels"))
    other = UrlHost(served, "scripted")
    other.headers = host.headers
    params = {"name": "hang", "arguments": {"mark": "cancelled"}}
    message = {"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": params}
    host._connection.request("POST", host.path, json.dumps(message), host.headers)  # pyright: ignore[reportPrivateUsage]
    peer.until("waiting", "cancelled")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "one"}}
    assert other.request("POST", cancel).status == 202
    (ended,) = messages_of(host._connection.getresponse())  # pyright: ignore[reportPrivateUsage]
    assert (ended["id"], ended["error"]["code"]) == ("one", -32800)
    until(lambda: len(peer.lines("cancels")) == cancels + 1, "the server is told")
    host.request("DELETE").read()


def test_a_server_speaks_by_itself_on_the_stream_of_its_host(served: Place):
    host = UrlHost(served, "scripted").begin()
    listening = UrlHost(served, "scripted")
    listening.headers = host.headers
    stream = listening.request("GET")
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    second = UrlHost(served, "scripted")
    second.headers = host.headers
    assert status_of(second.request("GET")) == (409, "has_stream")
    assert host.ask("resources/subscribe", {"uri": "memo://one"})["result"] == {}
    event = b""
    while b"updated" not in event:
        event = stream.readline()
    assert json.loads(event[6:])["params"] == {"uri": "memo://one"}
    host.request("DELETE").read()
    assert stream.read().strip() == b"", "the stream ends with the session"


def test_changes_over_http_come_on_the_stream_that_asked_for_them(served: Place):
    named = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": HELLO["clientInfo"]}
    meta = {PREFIX + name: said for name, said in named.items()}
    host, other = UrlHost(served, "changing"), UrlHost(served, "changing")
    assert other.ask("tools/list", {"_meta": meta})["result"]["tools"]
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": "changes", "method": "subscriptions/listen", "params": wanted}
    stream = host.request("POST", message)
    told = [json.loads(line[6:]) for line in lines_of(stream, 2)]
    assert [one["method"] for one in told] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    assert {one["params"]["_meta"][PREFIX + "subscriptionId"] for one in told} == {"changes"}
    stream.close()


def lines_of(stream: http.client.HTTPResponse, count: int) -> list[bytes]:
    """So many events."""
    found: list[bytes] = []
    while len(found) < count:
        line = stream.readline()
        assert line, "the stream has ended"
        found += [line] if line.startswith(b"data: ") else []
    return found


def test_without_sessions_a_conversation_keeps_its_server(served: Place, peer: Peer):
    """The protocol without a handshake has no sessions."""
    before = len(peer.pids)
    named = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": HELLO["clientInfo"]}
    meta = {"_meta": {PREFIX + name: said for name, said in named.items()}}
    hosts = [UrlHost(served, "scripted", thread="no-session") for _ in range(2)]
    for host in hosts:
        answer = host.ask("tools/call", {"name": "echo", "arguments": {}, **meta})
        assert answer["result"]["resultType"] == "complete"
    assert len(peer.pids) == before + 1
    data = {"name": "hang", "arguments": {"mark": "cut"}, **meta}
    message = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": data})
    cancels = len(peer.lines("cancels"))
    hosts[0]._connection.request("POST", hosts[0].path, message, hosts[0].headers)  # pyright: ignore[reportPrivateUsage]
    peer.until("waiting", "cut")
    hosts[0]._connection.close()  # pyright: ignore[reportPrivateUsage]
    until(lambda: len(peer.lines("cancels")) == cancels + 1, "a closed connection cancels")


def enveloped(**params: Any) -> dict[str, Any]:
    """The params of a request in the protocol without a handshake."""
    named = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": HELLO["clientInfo"]}
    meta = {PREFIX + name: said for name, said in named.items()} | params.pop("_meta", {})
    return {**params, "_meta": meta}


def test_two_clients_of_a_conversation_with_the_same_ids_are_kept_apart(served: Place, peer: Peer):
    """Both choose the id 1 and the progress token 1, as clients do."""
    hosts = [UrlHost(served, "scripted", thread="same-ids") for _ in range(3)]
    for number, host in enumerate(hosts[:2]):
        host.path += "&threshold=-1"
        params = enveloped(name="gate", arguments={"mark": f"same-{number}"}, _meta={"progressToken": 1})
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        host._connection.request("POST", host.path, message, host.headers)  # pyright: ignore[reportPrivateUsage]
        peer.until("waiting", f"same-{number}")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": enveloped(requestId=1)}
    response = hosts[2].request("POST", cancel)
    assert (response.status, response.read()) == (202, b"")
    peer.open_gate()
    for number, host in enumerate(hosts[:2]):
        said = messages_of(host._connection.getresponse())  # pyright: ignore[reportPrivateUsage]
        assert [one.get("method") for one in said] == ["notifications/progress", None]
        assert said[0]["params"]["progressToken"] == 1
        assert said[1]["result"]["content"][0]["text"] == f"through same-{number}"
    (peer.folder / "gate").unlink()


def test_without_sessions_each_login_has_a_connection_of_its_own(served: Place):
    """A server may bind its session to whoever has made the handshake."""
    for name in ("-ann", "-ben"):
        host = UrlHost(served, "guard", thread="logins", login=SECRET + name)
        host.path += "&threshold=-1"
        answer = host.ask("tools/call", enveloped(name="who", arguments={}))
        assert answer["result"]["content"][0]["text"] == name
    greeted = host.ask("tools/call", enveloped(name="greeted", arguments={}))["result"]["content"][0]["text"]
    assert greeted.split()[-2:] == ["-ann", "-ben"]


class Pending:
    """A server that has answered nothing yet, and the end of it that notes what it is told."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.challenged: list[int | str | None] = []
        self.send = self.sent.append

    def start(self, order: Any, end: Any) -> Any:
        return self

    def on_challenge(self, id: int | str | None, challenge: LoginChallenge, why: str) -> None:
        self.challenged.append(id)


@pytest.mark.anyio
async def test_a_login_that_is_refused_is_said_to_every_request_that_waits():
    """They wait for our own first request, which the server has refused."""
    pending: Any = Pending()
    server = NegotiatedServer(pending, WrapOrder(words=("x",), cwd="/", env={}), pending)
    for id in (1, 2):
        server.send(request(b"%d" % id, "tools/call", raw(enveloped(name="who"))))
    assert [json.loads(line)["method"] for line in pending.sent] == ["server/discover"]
    server.on_challenge("meantime-probe", LoginChallenge(401, "Bearer", b""), "It asks for a login.")
    assert pending.challenged == [1, 2]
    server.send(request(b"3", "tools/call", raw(enveloped(name="who"))))
    assert len(pending.sent) == 2, "the next one asks again"


def test_a_conversation_is_not_a_session(served: Place):
    host = UrlHost(served, "scripted", thread="not-a-session")
    host.path += "&threshold=-1"
    assert "result" in host.ask("tools/call", enveloped(name="echo", arguments={}))
    host.headers["mcp-session-id"] = "thread not-a-session"
    assert status_of(host.request("DELETE")) == (404, "no_session")


def test_a_url_starts_nothing_but_configured_servers(served: Place, tmp_path: Path):
    planted = tmp_path / "planted"
    for name in (
        f"touch%20{planted}",
        "touch",
        "http:%2F%2F127.0.0.1:1",
        "no-such-server",
        "..",
        "%2Fbin%2Fsh",
    ):
        response = UrlHost(served, name).post("initialize", HELLO)
        assert response.status == 404, name
        response.read()
    assert not planted.exists()


def test_the_gate_of_the_http_server_guards_wrapped_servers(served: Place):
    host = UrlHost(served, "scripted")
    own = dict(host.headers)
    del host.headers["authorization"]
    assert status_of(host.post("initialize", HELLO)) == (401, "token_needed")
    host.headers = {**own, "authorization": "Bearer wrong"}
    assert status_of(host.post("initialize", HELLO)) == (401, "wrong_token")
    host.headers = {**own, "origin": "https://elsewhere.example"}
    assert status_of(host.post("initialize", HELLO)) == (403, "foreign_origin")
    host.headers = {**own, "host": "rebound.example"}
    assert status_of(host.post("initialize", HELLO)) == (421, "wrong_host")
    host.headers = {**own, "content-type": "text/plain"}
    assert status_of(host.post("initialize", HELLO)) == (415, "not_json")
    host.headers = own
    assert status_of(host.request("PUT", {})) == (405, "wrong_method")
    assert status_of(host.post("tools/list")) == (400, "no_session")
    assert status_of(host.request("POST", [])) == (400, "not_json_rpc")
    for threshold in ("soon", "nan", "inf", "-2", "86401"):
        host.path = f"/mcp/wrap/scripted?threshold={threshold}"
        assert status_of(host.post("initialize", HELLO)) == (400, "invalid_input"), threshold
    host.path = "/mcp/wrap/scripted"
    host.begin()
    bound = UrlHost(served, "scripted")
    bound.headers = {**host.headers, "authorization": f"Bearer {thread_token(served, 'another')}"}
    assert status_of(bound.post("tools/list")) == (404, "no_session"), "it is another caller's"
    host.request("DELETE").read()


def thread_token(at: Place, thread: str) -> str:
    from meantime.surfaces.http.tokens import Tokens

    return Tokens(token_of(at)).for_thread(thread)


def test_the_login_of_a_host_is_passed_on_and_kept_nowhere(served: Place):
    host = UrlHost(served, "guard", login="wrong")
    refused = host.post("initialize", HELLO)
    metadata = "/.well-known/oauth-protected-resource/mcp"
    assert refused.status == 401
    challenge = refused.headers["www-authenticate"]
    assert challenge.startswith('Bearer error="invalid_token", resource_metadata="http://127.0.0.1:')
    assert challenge.endswith(f'{metadata}"')
    assert json.loads(refused.read()) == {"error": "invalid_token"}
    assert "mcp-session-id" in refused.headers, "whoever repeats it with a login gets a new one"
    host = UrlHost(served, "guard", login=SECRET + "-first").begin()
    assert host.call("who")["result"]["content"][0]["text"] == "-first"
    host.headers["authorization"] = f"Bearer {SECRET}-second"
    assert host.call("who")["result"]["content"][0]["text"] == "-second", "a renewed token is used at once"
    host.headers["authorization"] = "Bearer expired"
    response = host.post("tools/call", {"name": "who", "arguments": {}})
    assert (response.status, response.headers["www-authenticate"]) == (401, challenge)
    response.read()
    host.headers["authorization"] = f"Bearer {SECRET}-third"
    assert host.call("who")["result"]["content"][0]["text"] == "-third"
    ours = UrlHost(served, "guard")  # our own token is in the header: it is never passed on
    assert ours.post("initialize", HELLO).status == 401
    found = [
        file
        for file in served.home.folder.rglob("*")
        if file.is_file() and SECRET.encode() in file.read_bytes()
    ]
    assert found == [], "the login is not stored, and not in the log"


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_sdk_gets_the_same_answers_through_a_url(served: Place, era: str):
    own = await answers(StdioServerParameters(command=sys.executable, args=[str(RICH_SERVER), "stdio"]), era)
    address = f"http://127.0.0.1:{port_of(served)}/~{token_of(served)}/mcp/wrap/rich?threshold=-1"
    assert_the_same(await answers(address, era), own)


class NoStorage:
    async def get_tokens(self) -> None: ...

    async def set_tokens(self, tokens: Any) -> None: ...

    async def get_client_info(self) -> None: ...

    async def set_client_info(self, client_info: Any) -> None: ...


@pytest.mark.anyio
async def test_a_strict_host_begins_no_login_for_an_address_that_is_not_its_own(served: Place):
    """The SDK finds the metadata through the wrap, and refuses them: they are of the server's own address."""
    address = f"http://127.0.0.1:{port_of(served)}/~{token_of(served)}/mcp/wrap/guard"
    client = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1:1/back")])
    login = OAuthClientProvider(address, client, NoStorage())
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    async with httpx2.AsyncClient(auth=login) as http_client:
        with pytest.raises(OAuthFlowError, match="does not match expected"):
            await http_client.post(address, json=message)


def test_messages_that_no_request_can_take_are_kept_within_limits():
    unsent = UnsentMessages()
    for number in range(MOST_UNSENT + 5):
        unsent.add(b"%d" % number)
    assert unsent.take() == [b"%d" % number for number in range(5, MOST_UNSENT + 5)]
    half = bytes(MOST_UNSENT_BYTES // 2)
    for message in (b"first", half, half, b"last"):
        unsent.add(message)
    assert unsent.take() == [half, b"last"]
    unsent.add(bytes(MOST_UNSENT_BYTES + 1))
    assert unsent.take() == []
