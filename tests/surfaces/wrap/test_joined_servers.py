"""Several servers behind one wrap: the host sees one, whose tools have the names of their servers before."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place, place_in
from surfaces.mcp.speaking import HELLO

from .conftest import NEVER_SOON, RICH_SERVER, SOON, Host, Peer, lives, task_of, texts

pytestmark = pytest.mark.breadth


class Joined:
    def __init__(self, place: Place, peers: dict[str, Peer]) -> None:
        self.place = place
        self.peers = peers


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    folder = tmp_path_factory.mktemp("joined")
    peers = {name: Peer(folder / name) for name in ("one", "two")}
    rich = [sys.executable, str(RICH_SERVER), "stdio"]
    with place_in(tmp_path_factory.mktemp("served")) as made:
        text = f"[http]\nport = 0\n[mcp]\nwrap_threshold = {NEVER_SOON}\n"
        text += f'wrap_thresholds = {{ "two/gate" = {SOON} }}\n'
        for name, peer in peers.items():
            text += f"[mcp.servers.{name}]\ncommand = {json.dumps(peer.command('taskless'))}\n"
        made.configure(f"{text}[mcp.servers.rich]\ncommand = {json.dumps(rich)}\n")
        made.up()
        yield Joined(made, peers)


def host_of(joined: Joined, thread: str, *servers: str) -> Host:
    return Host(joined.place, "--wrap", "--prefix", "--thread", thread, *servers)


def test_tools_of_all_servers_are_listed_and_called_by_their_prefix(joined: Joined, thread: str):
    with host_of(joined, thread, "one", "two") as host:
        host.hello()
        names = [tool["name"] for tool in host.ask("tools/list")["tools"]]
        assert len(names) == len(set(names))
        assert {"one__echo", "two__echo"} < set(names)
        ids = {
            host.send("tools/call", {"name": f"{name}__echo", "arguments": {"text": name}}): name
            for name in ("one", "two")
        }
        assert {(said := host.read())["id"]: texts(said)[0] for _ in ids} == ids
        error = host.call("three__echo")["error"]
        assert error["code"] == -32602
        assert "There are: one, two." in error["message"]
        assert host.ask("ping") == {}


def test_requests_of_two_servers_are_answered_apart(joined: Joined, thread: str):
    """Both may use the same id."""
    with host_of(joined, thread, "one", "two") as host:
        host.hello()
        calls = [
            host.send("tools/call", {"name": f"{name}__samples", "arguments": {}}) for name in ("one", "two")
        ]
        asked = [said["id"] for _ in calls if (said := host.read())["method"] == "sampling/createMessage"]
        assert len(set(asked)) == 2
        for id in asked:
            host.say({"id": id, "result": {"role": "assistant", "content": {"type": "text", "text": "x"}}})
        answers = {(said := host.read())["id"]: texts(said) for _ in calls}
        assert answers == {id: ["served"] for id in calls}


def test_a_slow_call_of_one_server_is_told_with_a_result_of_another(joined: Joined, thread: str):
    with host_of(joined, thread, "one", "two") as host:
        host.hello()
        task = task_of(host.call("two__gate", mark="m"))
        assert joined.place.ask("GET", f"/v1/tasks/{task}")["description"] == "two/gate"
        joined.peers["two"].open_gate()
        assert joined.place.wait(task)["state"] == "completed"
        told = texts(host.call("one__echo", text="next"))
        assert told[0] == "next"
        assert "through m" in told[1]
        assert texts(host.call("two__echo", text="after")) == ["after"], "one inbox for both"


def test_one_server_may_die_and_the_other_works(joined: Joined, thread: str):
    with host_of(joined, thread, "one", "two") as host:
        host.hello()
        assert texts(host.call("two__echo", text="x")) == ["x"]
        os.kill(joined.peers["one"].pids[-1], signal.SIGKILL)
        assert texts(host.call("two__echo", text="mine")) == ["mine"]
        said = until(lambda: host.call("one__echo", text="again").get("result"), "it is started again")
        assert said["content"][0]["text"] == "again"
        pids = [peer.pids[-1] for peer in joined.peers.values()]
        host.leave()
        assert host.process.wait(LIMIT) == 0
        until(lambda: not any(map(lives, pids)), "both are stopped")


def test_prompts_by_their_prefix_and_resources_by_their_uri(joined: Joined, thread: str):
    with host_of(joined, thread, "one", "rich") as host:
        params = {**HELLO, "protocolVersion": "2025-06-18"}
        info = host.ask("initialize", params)
        host.say({"method": "notifications/initialized"})
        assert info["serverInfo"]["name"] == "meantime"
        assert info["protocolVersion"] == "2025-06-18", "the oldest that one of them speaks"
        assert {"tools", "prompts", "resources"} <= set(info["capabilities"])
        assert info["instructions"] == "rich: One of everything."
        prompts = [one["name"] for one in host.ask("prompts/list")["prompts"]]
        assert prompts == ["rich__greet", "rich__second", "rich__third"], "all pages, as one"
        greeting = host.ask("prompts/get", {"name": "rich__greet", "arguments": {"name": "Ada"}})
        assert greeting["messages"][0]["content"]["text"] == "Greet Ada."
        ref = {"type": "ref/prompt", "name": "rich__greet"}
        found = host.ask("completion/complete", {"ref": ref, "argument": {"name": "name", "value": "A"}})
        assert found["completion"]["values"] == ["Aa", "Ab"]
        (memo,) = host.ask("resources/list")["resources"]
        assert host.ask("resources/read", {"uri": memo["uri"]})["contents"][0]["text"] == "the first memo"
        other = host.ask("resources/read", {"uri": "memo://two/page"})
        assert other["contents"][0]["text"] == "the page of two", "whoever knows an unlisted one"
        assert "error" in host.answer(host.send("resources/read", {"uri": "memo://none"}))
        assert texts(host.call("rich__weather", city="Graz"))


REFUSED = {
    "twice": (["one", "one"], "each once"),
    "separator": (["a__b"], "cannot stand"),
    "a_command": (["--", "npx", "-y"], "cannot stand"),
    "blank": (["a b"], "cannot stand"),
    "none": ([], "needs a server"),
    "scheme": (["docs=ftp://x"], "'ftp://x' is not a URL of http or https."),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_prefixes_that_make_no_sense_are_refused(joined: Joined, words: list[str], said: str):
    done = joined.place.cli("mcp", "--wrap", "--prefix", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_server_that_is_not_configured_is_said(joined: Joined, thread: str):
    with host_of(joined, thread, "one", "no-such-server") as host:
        host.hello()
        assert texts(host.call("one__echo", text="x")) == ["x"]
        error = host.call("no-such-server__echo")["error"]["message"]
        assert "There is no server 'no-such-server' in [mcp.servers]." in error


@pytest.mark.parametrize("word", ["cat", "docs=cat"])
def test_a_word_is_never_run_as_a_command(joined: Joined, word: str):
    """Both are programs that would start, and say nothing."""
    with host_of(joined, "never", word) as host:
        error = host.answer(host.send("initialize", HELLO))["error"]
        assert "There is no server 'cat' in [mcp.servers]. There are: one, two, rich." in error["message"]
