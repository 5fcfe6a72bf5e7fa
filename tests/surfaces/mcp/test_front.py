"""`meantime mcp` while the SDK is not loaded yet: nothing is lost, said twice, or said in another order."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place
from meantime.dialects.meantime.meantime_arguments import LONGEST_WAIT
from meantime.surfaces.mcp.handshake import CAPABILITIES, CLIENT, NEWEST, VERSION

from . import speaking
from .speaking import COMMAND, HELLO, Raw

pytestmark = pytest.mark.processes

META = {VERSION: NEWEST, CLIENT: HELLO["clientInfo"], CAPABILITIES: {}}
FULL = 40_000  # bytes: a pipe has 16 pages, and not each of them gets full


def changed(statements: str) -> list[str]:
    """`meantime mcp`, after these."""
    program = (
        f"import sys; {statements}; from meantime.app.main import main; sys.argv[0] = 'meantime'; main()"
    )
    return [sys.executable, "-c", program, "mcp"]


# A daemon that is busy is asked for two seconds only, and then the SDK answers.
FRONT = changed(f"import meantime.app.mcp_startup as start; start.PATIENCE = {LIMIT}")
WITHOUT = changed("import meantime.app.mcp_startup as start; start.begin = lambda *given: None")


def message(id: int | str | None, method: str, **params: Any) -> bytes:
    numbered = {} if id is None else {"id": id}
    return json.dumps({"jsonrpc": "2.0", **numbered, "method": method, "params": params}).encode() + b"\n"


INITIALIZE = message(1, "initialize", **HELLO)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
LIST = message(2, "tools/list")


def call(id: int, name: str, **arguments: Any) -> bytes:
    return message(id, "tools/call", name=name, arguments=arguments)


def said(place: Place, data: bytes, *arguments: str, command: list[str] = FRONT) -> list[dict[str, Any]]:
    """All that it answers to a client that says this and leaves."""
    done = subprocess.run(
        [*command, *arguments], input=data, capture_output=True, timeout=2 * LIMIT, check=False,
        env=place.environ, cwd=place.home.config.parent,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "COMMAND", FRONT)


def test_nothing_heavy_is_loaded_before_the_first_answers():
    own = ("main", "verbs.mcp", "mcp_startup")
    modules = ", ".join(["meantime.surfaces.cli.invocation", *(f"meantime.app.{name}" for name in own)])
    program = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    heavy = {
        "asyncio",
        "click",
        "email",
        "http",
        "logging",
        "mcp",
        "msgspec",
        "pydantic",
        "ssl",
        "subprocess",
    }
    assert heavy & set(loaded.split()) == set()


@pytest.mark.parametrize(
    "options", [[], ["--dialect", "llxprt", "--by-session"], ["--by-session", "--thread=x"]]
)
def test_a_process_with_a_front_answers_as_one_without(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
):
    """The same tools, whoever lists them: the daemon, or the process that is connected to it."""
    (tmp_path / "chores.py").write_text(
        "from meantime import background\n\n@background\ndef add(a: int, b: int) -> int:\n    return a + b\n"
    )
    environ = {**place.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])}
    monkeypatch.setattr(place.__class__, "environ", property(lambda self: environ))
    agents = '[agents.asker]\nrunner = "python"\nagent = "asker:colour"\ndescription = "Asks"\n'
    for settings in ("", agents):
        place.configure(f'tools = ["chores"]\n[http]\nport = 0\n{settings}')
        place.up()
        for talk in (
            INITIALIZE + INITIALIZED + LIST + message(3, "ping"),
            message(1, "server/discover", _meta=META) + message(2, "tools/list", _meta=META),
        ):
            early = said(place, talk, *options)
            assert [answer["id"] for answer in early] == ([1, 2, 3] if b"ping" in talk else [1, 2])
            late = said(place, talk, *options, command=WITHOUT)
            assert early == sorted(late, key=lambda answer: answer["id"])
        place.down()


def test_everything_that_comes_at_once_is_answered_once_and_in_order(place: Place):
    """All in one piece, with what the front answers, what it leaves, and a message that no pipe can hold."""
    place.up()
    big = call(4, "list", status="x" * 1_000_000)
    talk = (
        INITIALIZE
        + INITIALIZED
        + call(3, "start", command="true")
        + LIST
        + big
        + call(5, "list")
        + b"what?\n"
    )
    answers = said(place, talk, "--thread", "conv-1")
    assert sorted(str(answer["id"]) for answer in answers) == ["1", "2", "3", "4", "5", "None"]
    assert [answer["id"] for answer in answers[:2]] == [1, 2]
    found = {answer["id"]: answer for answer in answers}
    assert found[3]["result"]["content"][0]["text"].startswith("Started ")
    assert found[4]["result"]["_meta"]["meantime/code"] == "invalid_input"
    assert found[None]["error"]["code"] == -32700
    (task,) = place.ask("GET", "/v1/tasks?thread=conv-1")["tasks"]
    assert task["id"] in found[3]["result"]["content"][0]["text"]


def test_the_newest_protocol_as_claude_code_speaks_it(place: Place):
    """It opens a stream, and asks for nothing before that is acknowledged: once, whoever loads what."""
    place.up()
    with Raw(place, "--thread", "conv-1") as raw:
        raw.write(message("probe", "server/discover", _meta=META))
        assert raw.read()["id"] == "probe"
        raw.write(
            message("listen:0", "subscriptions/listen", _meta=META, notifications={"toolsListChanged": True})
        )
        assert raw.read()["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "listen:0"}
        raw.write(message(0, "server/discover", _meta=META) + message(1, "resources/list", _meta=META))
        raw.write(message(2, "tools/list", _meta=META))
        assert [raw.read()["id"] for _ in range(3)] == [0, 2, 1]
        raw.write(message(3, "tools/call", name="list", arguments={}, _meta=META))
        assert raw.read()["result"]["content"][0]["text"] == "Nothing runs."
        raw.leave()
        assert raw.process.wait(LIMIT) == 0
        assert raw.process.communicate()[1] == b""


def test_a_message_that_comes_byte_by_byte_and_numbers_that_are_used_again(place: Place):
    place.up()
    with Raw(place) as raw:
        for one in INITIALIZE:
            raw.write(bytes([one]))
        assert raw.read()["result"]["serverInfo"]["name"] == "meantime"
        raw.write(INITIALIZED)
        raw.write(message(1, "tools/list"))
        assert "tools" in raw.read()["result"]
        raw.write(call(1, "list"))
        assert raw.read()["result"]["content"][0]["text"] == "Nothing runs."
        raw.write(message(1, "initialize", **HELLO))
        assert raw.read()["result"]["protocolVersion"] == HELLO["protocolVersion"]


def test_a_call_that_is_cancelled_while_the_sdk_is_loaded(place: Place):
    place.up()
    place.ask("POST", "/v1/tasks", {"thread": "conv-1", "command": "sleep 600", "id": "slow"})
    with Raw(place, "--thread", "conv-1") as raw:
        wait = call(7, "wait", seconds=LONGEST_WAIT)
        cancelled = message(None, "notifications/cancelled", requestId=7)
        raw.write(INITIALIZE + INITIALIZED + LIST + wait + cancelled + call(8, "list"))
        assert [raw.read()["id"] for _ in range(3)] == [1, 2, 8]
        assert place.ask("GET", "/v1/tasks/slow")["status"] == "running"


def test_a_client_that_reads_nothing_until_it_has_asked_for_more_than_a_pipe_holds(place: Place):
    """Each answer waits, whole and once; and the client is never waited for: it can still leave."""
    place.up()
    with Raw(place) as raw:
        raw.write(INITIALIZE + INITIALIZED)
        for id in range(2, 32):
            raw.write(message(id, "tools/list"))
        raw.write(call(99, "list"))
        until(lambda: raw.waiting() > FULL, "the pipe is full")
        assert sorted(raw.read()["id"] for _ in range(32)) == [*range(1, 32), 99]
    with Raw(place) as raw:
        raw.write(INITIALIZE + INITIALIZED)
        for id in range(2, 32):
            raw.write(message(id, "tools/list"))
        until(lambda: raw.waiting() > FULL, "the pipe is full")
        raw.leave()
        assert raw.process.wait(LIMIT) == 0


def test_what_the_front_leaves_is_refused_as_the_sdk_refuses_it(place: Place):
    """A batch, a handshake without a version, a line that is too long; then it goes on as usual."""
    place.up()
    with Raw(place) as raw:
        raw.write(b"[" + INITIALIZE.strip() + b"]\n")
        assert raw.read()["error"]["code"] == -32700
        raw.write(message(1, "initialize", capabilities={}))
        assert raw.read()["error"]["code"] == -32602
        raw.write(INITIALIZE + INITIALIZED + call(2, "list"))
        assert [raw.read()["id"] for _ in range(2)] == [1, 2]
    with Raw(place) as raw:
        raw.write(INITIALIZE + b"x" * (5 << 20) + b"\n" + LIST)
        answers = [raw.read() for _ in range(3)]
        assert [answer["id"] for answer in answers] == [1, None, 2]
        assert "at most 4194304 bytes" in answers[1]["error"]["message"]


def test_a_client_that_leaves_is_followed_at_once(place: Place):
    """After its handshake, in the middle of a line, before it has said anything."""
    place.up()
    assert [answer["id"] for answer in said(place, INITIALIZE)] == [1]
    assert [answer["id"] for answer in said(place, INITIALIZE + INITIALIZED + LIST.strip())] == [1, 2]
    assert said(place, b"\n") == []
    answers = said(place, INITIALIZE + b'{"jsonrpc":')
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32700]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_signal_ends_it_before_during_and_after_the_load(place: Place, number: signal.Signals, code: int):
    place.up()
    for talk, count in ((INITIALIZE, 1), (INITIALIZE + LIST, 2), (INITIALIZE + LIST + call(3, "list"), 3)):
        with Raw(place) as raw:
            raw.write(talk)
            for _ in range(count):
                raw.read()
            raw.process.send_signal(number)
            assert raw.process.wait(LIMIT) == code
            assert b"Traceback" not in raw.process.communicate()[1]


def test_nobody_reads_the_answers(place: Place):
    place.up()
    with Raw(place) as raw:
        assert raw.process.stdout is not None
        raw.process.stdout.close()
        raw.process.stdout = None
        raw.write(INITIALIZE)
        assert raw.process.wait(LIMIT) == 0
        assert raw.process.communicate()[1] == b""


def test_another_version_of_the_daemon_answers_nothing_for_it(place: Place):
    place.up()
    other = changed("import meantime; meantime.__version__ = '0.0.9'")
    (answer,) = said(place, INITIALIZE, command=other)
    assert answer["result"]["serverInfo"]["version"] == "0.0.9"


def test_an_sdk_that_is_not_there_is_said_before_anything_is_answered(place: Place, tmp_path: Path):
    """It breaks when it is loaded; the front has not promised anything."""
    place.up()
    hidden = (
        "import importlib.machinery as m; found = m.PathFinder.find_spec;"
        "m.PathFinder.find_spec = classmethod("
        "lambda cls, name, *more: None if name.startswith('mcp') else found(name, *more))"
    )
    done = subprocess.run(
        changed(hidden),
        input=INITIALIZE,
        capture_output=True,
        timeout=LIMIT,
        check=False,
        env=place.environ,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"meantime: `mcp` needs mcp, which is not installed.\n")


NOTHING = ("</dev/null", "<&-", "<&- >&-", "<&- >&- 2>&-", "</dev/null >/dev/null")


def redirected(place: Place, how: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {how}', "sh", *COMMAND], env=place.environ, capture_output=True,
        timeout=2 * LIMIT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_stdin_that_is_nothing_ends_it(place: Place):
    place.up()
    for how in NOTHING:
        assert redirected(place, how) == (0, b"", b""), how


@pytest.mark.parametrize(
    "how", [NOTHING[0], *(pytest.param(how, marks=pytest.mark.processes) for how in NOTHING[1:])]
)
def test_a_stdin_that_is_nothing_ends_it_without_a_front(place: Place, how: str):
    """The daemon is still down, so the SDK reads it."""
    assert redirected(place, how) == (0, b"", b"")


def test_a_terminal_is_spoken_with_line_by_line(place: Place):
    place.up()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(COMMAND, stdin=theirs, stdout=subprocess.PIPE, env=place.environ)
    os.close(theirs)
    try:
        assert process.stdout is not None
        for asked, id in ((INITIALIZE + LIST, 1), (call(3, "list"), 2), (b"", 3)):
            os.write(ours, asked)
            assert json.loads(process.stdout.readline())["id"] == id
        os.write(ours, b"\x04")  # Ctrl+D
        assert process.wait(LIMIT) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
