"""The server behind a wrap belongs to the daemon: whom it outlives, when it ends, and what is told when one
of the processes is killed."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place
from meantime.surfaces.wrap.held_server import MOST_UNASKED

from .conftest import CONFIG, NEVER_SOON, Host, Peer, Wrapped, hosts_of, lives, task_of, texts

pytestmark = pytest.mark.breadth

SHOWS = (
    "import os, sys, json; print(json.dumps([os.getcwd(), dict(os.environ)]), file=open(sys.argv[1], 'w'))"
)


def test_the_server_has_the_hosts_folder_and_environment_and_no_value_is_stored(
    served: Place, peer: Peer, wrapped: Wrapped, tmp_path
):
    shown = tmp_path / "shown"
    secret = "s3cr3t-of-the-host"
    with Host(
        served, "--wrap", "--", sys.executable, "-c", SHOWS, str(shown), TOKEN=secret, ODD="ä\udcff"
    ) as host:
        host.send("initialize", {})
        until(lambda: shown.exists() and shown.read_text().endswith("\n"), "the server has started")
    folder, environ = eval(shown.read_text())
    assert folder == str(served.home.config.parent)
    assert environ["TOKEN"] == secret
    assert environ["ODD"] == "ä\udcff"
    kept = [file for file in served.home.folder.rglob("*") if file.is_file()]
    assert not [file for file in kept if secret.encode() in file.read_bytes()]


def test_a_host_that_vanishes_in_mid_call_is_told_when_it_comes_back(
    served: Place, wrapped: Wrapped, peer: Peer, thread: str
):
    """The call becomes a task at once. Its server lives until the call has ended, and no longer."""
    host = wrapped(threshold=NEVER_SOON)
    host.send("tools/call", {"name": "gate", "arguments": {"mark": "m"}})
    peer.until("waiting", "m")
    host.process.kill()
    (task,) = until(lambda: served.ask("GET", f"/v1/tasks?thread={thread}")["tasks"], "it is a task")
    assert (task["state"], task["description"]) == ("running", "scripted/gate")
    (server,) = peer.pids
    assert lives(server)
    peer.open_gate()
    assert served.wait(task["id"])["result"] == "through m"
    until(lambda: not lives(server), "the server is stopped")
    again = wrapped(threshold=NEVER_SOON)
    told = texts(again.call("echo", text="back"))
    assert told[0] == "back"
    assert "through m" in told[1]
    assert texts(again.call("echo", text="next")) == ["next"]


def test_an_answer_that_comes_just_after_the_host_has_vanished_is_told(
    served: Place, wrapped: Wrapped, peer: Peer, thread: str
):
    """Nobody reads it any more, even if the daemon has not looked yet: it is not taken for given."""
    host = wrapped(threshold=NEVER_SOON)
    for mark in ("one", "two"):
        host.send("tools/call", {"name": "gate", "arguments": {"mark": mark}})
        peer.until("waiting", mark)
    host.process.kill()
    host.process.wait()
    peer.open_gate()
    again = wrapped(threshold=NEVER_SOON)
    unread = f"/v1/notices?thread={thread}&state=unread"
    until(lambda: len(served.ask("GET", unread)["notices"]) == 2, "both have ended")
    told = "".join(texts(again.call("echo", text="back")))
    assert "through one" in told
    assert "through two" in told


def test_a_host_that_leaves_ends_its_server(wrapped: Wrapped, peer: Peer):
    host = wrapped()
    assert texts(host.call("echo", text="x")) == ["x"]
    host.leave()
    assert host.process.wait(LIMIT) == 0
    until(lambda: not lives(peer.pids[0]), "the server is stopped")


def test_a_server_that_crashes_is_started_again_with_the_hosts_handshake(wrapped: Wrapped, peer: Peer):
    host = wrapped(threshold=NEVER_SOON)
    error = host.call("crash")["error"]["message"]
    assert "ended with exit code 7" in error
    assert "Whether the tool did its work is not known" in error
    assert "Its last words on stderr: a wheel came off" in error
    assert texts(host.call("echo", text="again")) == ["again"], "a call at once waits for the new start"
    assert len(set(peer.pids)) == 2
    assert peer.lines("calls").count("crash") == 1, "a lost call is not sent again"


def subscribed(host: Host) -> None:
    """To two resources, of which one is enough in the end; and with a log level."""
    for method, params in (
        ("resources/subscribe", {"uri": "memo://kept"}),
        ("resources/subscribe", {"uri": "memo://left"}),
        ("resources/unsubscribe", {"uri": "memo://left"}),
        ("logging/setLevel", {"level": "debug"}),
    ):
        assert host.answer(host.send(method, params))["result"] == {}


def until_updated(host: Host, uri: str) -> None:
    while (said := host.read()).get("method") != "notifications/resources/updated":
        assert "error" not in said, said
    assert said["params"] == {"uri": uri}


REPEATED = ["logging/setLevel debug", "resources/subscribe memo://kept"]


def test_subscriptions_and_the_log_level_hold_over_a_new_start_of_the_server(wrapped: Wrapped, peer: Peer):
    """Without any request of the host: it waits for news."""
    host = wrapped(threshold=NEVER_SOON)
    subscribed(host)
    assert len(peer.lines("lasting")) == 4
    os.kill(peer.pids[0], signal.SIGKILL)
    until_updated(host, "memo://kept")
    assert peer.lines("lasting")[4:] == REPEATED
    assert texts(host.call("echo", text="and")) == ["and"], "its own answers to these reach nobody"


def test_subscriptions_and_the_log_level_hold_over_a_new_daemon(place: Place, peer: Peer):
    place.configure(CONFIG)
    place.up()
    with hosts_of(place, peer, "conv-1") as wrapped:
        host = wrapped()
        subscribed(host)
        place.kill()
        until(lambda: not any(map(lives, peer.pids)), "the server ends with its daemon")
        id = host.send("tools/call", {"name": "echo", "arguments": {"text": "next"}})
        until_updated(host, "memo://kept")
        assert texts(host.answer(id)) == ["next"]
        assert sorted(peer.lines("lasting")[4:]) == REPEATED


def test_a_server_that_dies_again_and_again_is_not_revived_for_ever(wrapped: Wrapped, peer: Peer):
    host = wrapped(threshold=NEVER_SOON)
    subscribed(host)
    for count in range(1, 1 + MOST_UNASKED):
        os.kill(peer.pids[-1], signal.SIGKILL)
        peer.until("lasting", REPEATED[1], 1 + count)
    os.kill(peer.pids[-1], signal.SIGKILL)
    held = len(peer.pids)
    said = until(lambda: host.call("echo", text="asked").get("result"), "a request starts it")
    assert said["content"][0]["text"] == "asked"
    assert len(peer.pids) == held + 1


def test_a_killed_server_is_honest_about_its_background_call(wrapped: Wrapped, peer: Peer, served: Place):
    host = wrapped()
    task = task_of(host.call("hang", mark="m"))
    os.kill(peer.pids[0], signal.SIGKILL)
    assert served.wait(task)["state"] == "lost"


def test_a_question_of_a_background_call_is_answered_at_any_door(served: Place, wrapped: Wrapped, peer: Peer):
    host = wrapped()
    task = task_of(host.call("elicits"))
    peer.open_gate()
    found = until(
        lambda: (seen := served.ask("GET", f"/v1/tasks/{task}"))["state"] == "waiting" and seen, "it asks"
    )
    assert found["question"]["text"] == "Which colour?"
    done = served.cli("answer", task, "blue")
    assert done.returncode == 0, done.stderr
    assert served.wait(task)["result"] == "accept {'colour': 'blue'}"


def waiting(served: Place, task: str) -> str:
    """The id of the question that it waits with; empty for none."""
    found = served.ask("GET", f"/v1/tasks/{task}")
    return found["question"]["id"] if found["state"] == "waiting" else ""


@pytest.mark.parametrize("vanishes", [False, True], ids=["host_stays", "host_vanishes"])
def test_several_background_calls_ask_and_each_gets_an_answer(
    served: Place, wrapped: Wrapped, peer: Peer, vanishes: bool
):
    host = wrapped()
    tasks = [task_of(host.call("elicits")) for _ in range(2)]
    if vanishes:
        host.process.kill()
        host.process.wait()
    peer.open_gate()
    until(lambda: all(waiting(served, task) for task in tasks), "both wait")

    def have_ended() -> bool:
        """Which of them waits with whose question is not known: an answer may end the other one."""
        for task in tasks:
            if waiting(served, task):
                served.cli("answer", task, "blue")
        return all(served.ask("GET", f"/v1/tasks/{task}")["completedAt"] for task in tasks)

    until(have_ended, "both have ended")
    for task in tasks:
        assert served.wait(task)["result"] == "accept {'colour': 'blue'}"


def test_a_question_goes_on_to_the_next_task_where_one_ends_without_an_answer(
    served: Place, wrapped: Wrapped, peer: Peer
):
    """A server does not say which of its calls asks: here it is not the newest one."""
    host = wrapped()
    asking, other = task_of(host.call("elicits")), task_of(host.call("hang", mark="m"))
    peer.open_gate()
    until(lambda: waiting(served, other), "the newest is taken for the one that asks")
    served.ask("POST", f"/v1/tasks/{other}/cancel")
    until(lambda: waiting(served, asking), "the other one asks")
    assert served.cli("answer", asking, "blue").returncode == 0
    assert served.wait(asking)["result"] == "accept {'colour': 'blue'}"


def test_a_question_that_the_server_takes_back_is_not_open_any_more(
    served: Place, wrapped: Wrapped, peer: Peer
):
    host = wrapped()
    task = task_of(host.call("takes_back"))
    (peer.folder / "ask").touch()
    until(lambda: waiting(served, task), "it asks")
    (peer.folder / "enough").touch()
    until(lambda: served.ask("GET", f"/v1/tasks/{task}")["state"] == "running", "it goes on")
    peer.open_gate()
    assert served.wait(task)["result"] == "without an answer"


def test_a_question_of_a_call_that_the_host_waits_for_reaches_the_host(wrapped: Wrapped, peer: Peer):
    host = wrapped(threshold=NEVER_SOON)
    id = host.send("tools/call", {"name": "elicits", "arguments": {}})
    peer.open_gate()
    asked = host.read()
    assert asked["method"] == "elicitation/create"
    host.say({"id": asked["id"], "result": {"action": "decline"}})
    assert texts(host.answer(id)) == ["decline None"]


def test_a_killed_daemon_costs_its_calls_and_not_the_session(place: Place, peer: Peer):
    """The open request gets an error, the background call is told as lost, and the next call works."""
    place.configure(CONFIG)
    place.up()
    with hosts_of(place, peer, "conv-1") as wrapped:
        host = wrapped()
        task = task_of(host.call("gate", mark="slow"))
        open_call = host.send("tools/call", {"name": "late", "arguments": {}})
        peer.until("waiting", "late")
        place.kill()
        assert "daemon was lost while this request was open" in host.answer(open_call)["error"]["message"]
        until(lambda: not any(map(lives, peer.pids)), "the server ends with its daemon")
        told = texts(host.call("echo", text="next"))
        assert told[0] == "next"
        assert len([text for text in told[1:] if task in text]) == 1
        assert texts(host.call("echo", text="after")) == ["after"]
        assert peer.lines("calls").count("gate slow") == 1
        host.leave()
        assert host.process.wait(LIMIT) == 0


def test_a_daemon_that_is_asked_to_end_takes_the_servers_along(place: Place, peer: Peer):
    place.configure(CONFIG)
    place.up()
    with hosts_of(place, peer, "conv-1") as wrapped:
        host = wrapped()
        task = task_of(host.call("hang", mark="m"))
        place.down()
        until(lambda: not any(map(lives, peer.pids)), "the server ends with its daemon")
        assert texts(host.call("echo", text="next"))[0] == "next"
        assert place.ask("GET", f"/v1/tasks/{task}")["state"] in ("lost", "cancelled")


def test_a_host_that_closes_its_input_gets_an_answer_to_everything(
    served: Place, wrapped: Wrapped, peer: Peer, thread: str
):
    """The daemon is there all the time. A call becomes a task; what the server owes otherwise is refused."""
    calling = wrapped(threshold=NEVER_SOON)
    call = calling.send("tools/call", {"name": "gate", "arguments": {"mark": "m"}})
    peer.until("waiting", "m")
    with Host(served, "--wrap", "--", "sleep", "600") as greeting:
        hello = greeting.send("initialize", {})
        for host in (calling, greeting):
            host.leave()
        error = greeting.answer(hello)["error"]["message"]
        assert error == "The server had not answered 2 s after the host closed its input."
        answer = calling.answer(call)
        assert texts(answer)[0].startswith("This call takes longer than 2 s and continues in the background")
        assert [host.process.wait(LIMIT) for host in (calling, greeting)] == [0, 0]
    peer.open_gate()
    assert served.wait(task_of(answer))["result"] == "through m"


def test_a_word_that_is_neither_a_program_nor_a_server_is_told_as_both(served: Place):
    with Host(served, "--wrap", "nosuch-server") as host:
        error = host.answer(host.send("initialize", {}))["error"]["message"]
        assert "The program 'nosuch-server' could not be started." in error
        assert "There is no server of this name in [mcp.servers]." in error


def test_a_url_of_another_scheme_is_refused_at_once(served: Place):
    done = served.cli("mcp", "--wrap", "ftp://x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'ftp://x' is not a URL of http or https." in done.stderr
