"""Every version of MCP on the side of the host with every version on the side of the server, on the wire."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from daemon.conftest import Place

from .conftest import SOON, Host, task_of, until_listening

pytestmark = pytest.mark.breadth

SERVER = Path(__file__).with_name("versioned_server.py")
PREFIX = "io.modelcontextprotocol/"
V1, V2, V3, V4, V5 = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
# A host speaks one version, and a server with a handshake those before its own, too. Each pair has the
# version that the host is told, and in brackets that of the server where it is translated.
AGREED = {
    ("2024-11-05", "2024-11-05"): "2024-11-05",
    ("2024-11-05", "2025-03-26"): "2024-11-05",
    ("2024-11-05", "2025-06-18"): "2024-11-05",
    ("2024-11-05", "2025-11-25"): "2024-11-05",
    ("2024-11-05", "2026-07-28"): "2024-11-05 (2026-07-28)",
    ("2025-03-26", "2024-11-05"): "2024-11-05",
    ("2025-03-26", "2025-03-26"): "2025-03-26",
    ("2025-03-26", "2025-06-18"): "2025-03-26",
    ("2025-03-26", "2025-11-25"): "2025-03-26",
    ("2025-03-26", "2026-07-28"): "2025-03-26 (2026-07-28)",
    ("2025-06-18", "2024-11-05"): "2024-11-05",
    ("2025-06-18", "2025-03-26"): "2025-03-26",
    ("2025-06-18", "2025-06-18"): "2025-06-18",
    ("2025-06-18", "2025-11-25"): "2025-06-18",
    ("2025-06-18", "2026-07-28"): "2025-06-18 (2026-07-28)",
    ("2025-11-25", "2024-11-05"): "2024-11-05",
    ("2025-11-25", "2025-03-26"): "2025-03-26",
    ("2025-11-25", "2025-06-18"): "2025-06-18",
    ("2025-11-25", "2025-11-25"): "2025-11-25",
    ("2025-11-25", "2026-07-28"): "2025-11-25 (2026-07-28)",
    ("2026-07-28", "2024-11-05"): "2026-07-28 (2024-11-05)",
    ("2026-07-28", "2025-03-26"): "2026-07-28 (2025-03-26)",
    ("2026-07-28", "2025-06-18"): "2026-07-28 (2025-06-18)",
    ("2026-07-28", "2025-11-25"): "2026-07-28 (2025-11-25)",
    ("2026-07-28", "2026-07-28"): "2026-07-28",
}
CLIENT = {"name": "strict", "version": "1"}


class Server:
    """The strict server: the words that a wrap gets for it, and what it was sent."""

    def __init__(self, version: str, log: Path) -> None:
        self.words = [sys.executable, str(SERVER), version, str(log)]
        self._log = log

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The params of all messages with this method."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        messages = [json.loads(line) for line in lines]
        return [one.get("params", {}) for one in messages if one.get("method") == method]


@contextmanager
def over(transport: str, version: str, folder: Path) -> Iterator[Server]:
    server = Server(version, folder / "log")
    if transport == "stdio":
        yield server
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([*server.words, str(port)]) as process:
        until_listening(port)
        server.words = [f"http://127.0.0.1:{port}/mcp"]
        yield server
        process.kill()


class StrictHost(Host):
    """A host of one version, which refuses what that version does not have."""

    version = V4

    def params(self, given: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        if self.version == V5:
            own = {"protocolVersion": V5, "clientInfo": CLIENT, "clientCapabilities": {"elicitation": {}}}
            meta |= {PREFIX + name: said for name, said in own.items()}
        return {**(given or {}), **({"_meta": meta} if meta else {})}

    def begin(self) -> dict[str, Any]:
        """The server's introduction; the newest version has none, and asks for nothing first."""
        if self.version == V5:
            return {}
        abilities = {"elicitation": {}} if self.version >= V3 else {}
        hello = {"protocolVersion": self.version, "capabilities": abilities, "clientInfo": CLIENT}
        said = self.ask("initialize", hello)
        assert said["serverInfo"]["name"] == "versioned"
        self.say({"method": "notifications/initialized"})
        return said

    def result(self, method: str, given: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        result = self.ask(method, self.params(given, **meta))
        if self.version == V5:
            assert result.pop("resultType") == "complete"
        return result

    def until(self, method: str) -> dict[str, Any]:
        """The params of the next notification or request with this method."""
        while (found := self.read()).get("method") != method:
            pass
        return found


@contextmanager
def host_of(served: Place, version: str, server: Server, threshold: float = -1) -> Iterator[StrictHost]:
    words = server.words if server.words[0].startswith("http") else ["--", *server.words]
    options = ("--wrap", "--threshold", str(threshold), "--thread", "versions")
    with StrictHost(served, *options, *words) as host:
        host.version = version  # type: ignore[attr-defined]
        yield host  # type: ignore[misc]


def assert_they_understand_each_other(host: StrictHost, server: Server, agreed: str) -> None:
    told, _, translated = agreed.rstrip(")").partition(" (")
    spoken = translated or told  # by the server
    said = host.begin()
    if host.version != V5:
        assert said["protocolVersion"] == told
        assert said["capabilities"]["tools"] == {"listChanged": True}
    tools = host.result("tools/list")
    assert [tool["name"] for tool in tools["tools"]] == ["echo"]
    assert ("cacheScope" in tools) == (V5 in agreed), "a member of the newest version alone"
    id = host.send("tools/call", host.params({"name": "echo", "arguments": {"a": 1}}, progressToken="mine"))
    assert host.until("notifications/progress")["params"]["progressToken"] == "mine"
    assert json.loads(host.answer(id)["result"]["content"][0]["text"]) == {"a": 1}
    (call,) = server.sent("tools/call")
    envelope = call["_meta"].get(PREFIX + "protocolVersion")
    assert envelope == (V5 if spoken == V5 else None)
    if spoken != V5:
        assert server.sent("initialize")[-1]["protocolVersion"] == (V4 if translated else host.version)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("pair", AGREED, ids=lambda pair: f"{pair[0]} host, {pair[1]} server")
def test_a_host_and_a_server_of_any_version_understand_each_other(
    served: Place, tmp_path: Path, pair: tuple[str, str], transport: str
):
    with over(transport, pair[1], tmp_path) as server, host_of(served, pair[0], server) as host:
        assert_they_understand_each_other(host, server, AGREED[pair])


@pytest.mark.parametrize("pair", [(V1, V5), (V5, V1)])
def test_a_host_and_a_server_without_a_common_version_are_translated(
    served: Place, tmp_path: Path, pair: tuple[str, str]
):
    with over("stdio", pair[1], tmp_path) as server, host_of(served, pair[0], server) as host:
        assert_they_understand_each_other(host, server, AGREED[pair])


@pytest.mark.parametrize("transport", ["stdio", pytest.param("http", marks=pytest.mark.breadth)])
def test_a_handshake_with_a_server_without_one_brings_everything_that_a_handshake_does(
    served: Place, tmp_path: Path, transport: str
):
    with over(transport, V5, tmp_path) as server, host_of(served, V4, server) as host:
        said = host.begin()
        assert said["instructions"] == "Be strict."
        host.until("notifications/tools/list_changed")
        assert host.ask("ping") == {}
        assert host.ask("resources/subscribe", {"uri": "memo://one"}) == {}
        assert host.until("notifications/resources/updated")["params"]["uri"] == "memo://one"
        assert host.ask("logging/setLevel", {"level": "debug"}) == {}
        host.ask("tools/list")
        assert server.sent("tools/list")[-1]["_meta"][PREFIX + "logLevel"] == "debug"
        assert host.answer(host.send("no/such/method"))["error"]["code"] == -32601
        assert server.sent("subscriptions/listen")[-1]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["memo://one"],
        }


def test_a_result_that_asks_is_a_question_to_a_host_with_a_handshake(served: Place, tmp_path: Path):
    with over("stdio", V5, tmp_path) as server, host_of(served, V4, server) as host:
        host.begin()
        call = host.send("tools/call", {"name": "asks"})
        asked = host.until("elicitation/create")
        assert asked["params"]["message"] == "Which?"
        given = {"action": "accept", "content": {"colour": "blue"}}
        host.say({"id": asked["id"], "result": given})
        said = json.loads(host.answer(call)["result"]["content"][0]["text"])
        assert said == {"one": given, "state": "half way"}
        refused = host.send("tools/call", {"name": "asks"})
        asked = host.until("elicitation/create")
        host.say({"id": asked["id"], "error": {"code": -32000, "message": "nobody is there"}})
        assert host.answer(refused)["error"]["message"] == "nobody is there"
        assert len(server.sent("tools/call")) == 3, "the second was not repeated"


@pytest.mark.parametrize("version", [V4, V5])
def test_a_question_in_a_result_of_a_background_call_makes_its_task_wait(
    served: Place, tmp_path: Path, version: str
):
    with over("stdio", V5, tmp_path) as server, host_of(served, version, server, threshold=SOON) as host:
        host.begin()
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        slow = host.params({"name": "asks", "arguments": {"gate": str(gate)}})
        task = task_of(host.answer(host.send("tools/call", slow)))
        gate.write_text("")
        until(lambda: served.ask("GET", f"/v1/tasks/{task}")["state"] == "waiting", "it waits")
        served.ask("POST", f"/v1/tasks/{task}/answer", {"answer": "green"})
        done = served.wait(task)
        assert done["state"] == "completed"
        again = server.sent("tools/call")[-1]
        assert again["inputResponses"]["one"]["content"] == {"colour": "green"}
        assert (again["requestState"], again["arguments"]) == ("half way", slow["arguments"])
        assert len(server.sent("tools/call")) == 2


def test_a_cancelled_question_of_a_result_is_taken_back(served: Place, tmp_path: Path):
    with over("stdio", V5, tmp_path) as server, host_of(served, V4, server) as host:
        host.begin()
        call = host.send("tools/call", {"name": "asks"})
        asked = host.until("elicitation/create")
        host.say({"method": "notifications/cancelled", "params": {"requestId": call}})
        assert host.until("notifications/cancelled")["params"]["requestId"] == asked["id"]
        host.say({"id": asked["id"], "result": {"action": "decline"}})
        assert host.call("echo")["result"]["content"]
        assert [one["name"] for one in server.sent("tools/call")] == ["asks", "echo"]


@pytest.mark.parametrize("transport", ["stdio", pytest.param("http", marks=pytest.mark.breadth)])
def test_a_host_without_a_handshake_gets_changes_of_a_server_with_one(
    served: Place, tmp_path: Path, transport: str
):
    with over(transport, V4, tmp_path) as server, host_of(served, V5, server) as host:
        wanted = {"resourceSubscriptions": ["memo://one"], "toolsListChanged": True}
        stream = host.send("subscriptions/listen", host.params({"notifications": wanted}))
        told = host.until("notifications/subscriptions/acknowledged")["params"]
        assert told == {"notifications": wanted, "_meta": {PREFIX + "subscriptionId": stream}}
        if transport == "stdio":
            told = host.until("notifications/resources/updated")["params"]
            assert told == {"uri": "memo://one", "_meta": {PREFIX + "subscriptionId": stream}}
        host.say({"method": "notifications/cancelled", "params": {"requestId": stream}})
        found = host.result("server/discover")
        assert found["supportedVersions"] == [V5]
        assert found["_meta"][PREFIX + "serverInfo"]["name"] == "versioned"
        until(lambda: server.sent("resources/unsubscribe") == [{"uri": "memo://one"}], "it is not told")
        level: dict[str, Any] = {PREFIX + "logLevel": "debug"}
        host.result("tools/list", None, **level)
        assert server.sent("logging/setLevel") == [{"level": "debug"}]


def test_changes_name_the_request_of_the_host_that_asked_for_them(served: Place, tmp_path: Path):
    with over("stdio", V5, tmp_path) as server, host_of(served, V5, server) as host:
        host.result("tools/list")  # so that ids at the server are others
        wanted = host.params({"notifications": {"toolsListChanged": True}})
        host.say({"id": "changes", "method": "subscriptions/listen", "params": wanted})
        told = host.until("notifications/subscriptions/acknowledged")["params"]
        assert told["_meta"] == {PREFIX + "subscriptionId": "changes"}
        told = host.until("notifications/tools/list_changed")["params"]
        assert told["_meta"] == {PREFIX + "subscriptionId": "changes"}


def test_a_host_that_knows_both_ways_makes_the_handshake_itself(served: Place, tmp_path: Path):
    with over("stdio", V4, tmp_path) as server, host_of(served, V5, server) as host:
        refused = host.answer(host.send("server/discover", host.params()))
        assert refused["error"]["code"] == -32601, "the server's own answer: then a host tries a handshake"
        host.version = V4
        assert host.begin()["protocolVersion"] == V4
        assert [tool["name"] for tool in host.result("tools/list")["tools"]] == ["echo"]
        assert len(server.sent("initialize")) == 1


def test_a_first_request_that_the_server_refuses_says_nothing_about_its_version(
    served: Place, tmp_path: Path
):
    with over("stdio", V5, tmp_path) as server, host_of(served, V5, server) as host:
        refused = host.answer(host.send("tools/list", host.params(None, **{PREFIX + "logLevel": "loud"})))
        assert refused["error"] == {"code": -32602, "message": "There is no such level"}
        assert host.result("tools/list")["cacheScope"] == "private", "it is spoken to in its own version"
        assert server.sent("initialize") == []


def test_versions_that_nobody_can_translate_are_named_in_the_error(served: Place, tmp_path: Path):
    with over("stdio", "2027-01-01", tmp_path) as server, host_of(served, V4, server) as host:
        hello = {"protocolVersion": V4, "capabilities": {}, "clientInfo": CLIENT}
        error = host.answer(host.send("initialize", hello))["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2027-01-01"], "requested": V4}
        assert f"the host speaks {V4}, the server 2027-01-01" in error["message"]
    with over("stdio", "2027-01-01", tmp_path) as server, host_of(served, V5, server) as host:
        error = host.answer(host.send("tools/list", host.params()))["error"]
        assert error["code"] == -32022
        assert f"the host speaks {V5}, the server refused both" in error["message"]


def test_a_batch_is_passed_on_as_single_messages(served: Place, tmp_path: Path):
    with over("stdio", V4, tmp_path) as server, host_of(served, V2, server) as host:
        host.begin()
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
        host.write(json.dumps([{**call, "id": "a"}, {**call, "id": "b"}]).encode() + b"\n")
        assert {host.read()["id"], host.read()["id"]} == {"a", "b"}
        assert len(server.sent("tools/call")) == 2
