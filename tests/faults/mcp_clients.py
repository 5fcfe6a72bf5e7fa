"""Clients at the MCP door that vanish, lie, pry, and say what is no message. Whatever one of them does, it is
refused in words, no other conversation notices, and what was promised to its thread is told to the next."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

from .adoption import clear
from .judge import Tally, Verdict, judge
from .mcp_door import EXTENSION, MODERN, OLDER, Pipe, Scene, Session, initialize, read_answer, request, same
from .trial import trial

WITNESS = "witness"
Fault = Callable[[Scene, str], None]
Case = Callable[[Scene, str, Any], None]


def run(seed: int, count: int, reproduce: str) -> Tally:
    """`count` of them, 0 is all, one after the other at one daemon, in an order that the seed chooses."""
    tally = Tally("hostile clients of the MCP server", reproduce)
    rng = random.Random(seed)
    chosen = rng.sample(sorted(FAULTS), count or len(FAULTS))
    problems: list[str] = []
    told = Verdict()

    def make(folder: Path) -> int:
        nonlocal told
        scene = Scene(folder)
        try:
            scene.up()
            with Session(scene, WITNESS) as witness:
                for name in chosen:
                    problems.extend(_one(scene, name, witness))
            scene.hear(WITNESS, again=False)
            told = judge(scene.facts, scene.told)
        finally:
            scene.daemon.end(signal.SIGKILL)
        return len(chosen)

    trial(tally, f"seed {seed}", make, lambda _: told._replace(lost=(*told.lost, *problems)), clear)
    return tally


def _one(scene: Scene, name: str, witness: Session) -> list[str]:
    """One fault in a thread of its own, in the middle of what an honest client does."""
    thread = scene.new_thread()
    scene.end(scene.start(thread))
    ours = scene.start(WITNESS)
    try:
        FAULTS[name](scene, thread)
        scene.end(ours)
        scene.note(WITNESS, witness.call("list"), again=False)
        scene.hear(thread)
    except Exception as problem:
        return [f"{name}: {type(problem).__name__}: {problem}\n{scene.daemon.said()[-500:]}"]
    return []


FAULTS: dict[str, Fault] = {}


def fault(play: Fault) -> Fault:
    FAULTS[play.__name__] = play
    return play


def each(**cases: Any) -> Callable[[Case], Case]:
    def made(play: Case) -> Case:
        for name, case in cases.items():
            FAULTS[f"{play.__name__}: {name}"] = partial(_with, play, case)
        return play

    return made


def _with(play: Case, case: Any, scene: Scene, thread: str) -> None:
    play(scene, thread, case)


def reset(talk: socket.socket) -> None:
    """As a process that was killed with its answer unread."""
    talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.close()


# -- those who vanish


@fault
def vanishes_in_mid_call(scene: Scene, thread: str) -> None:
    slow = scene.start(thread, command=["cat"], openStdin=True)
    with Session(scene, thread) as session:
        scene.note(thread, session.call("list"))
        reset(session.begin("wait", ids=[slow], seconds=40))
    scene.api("POST", f"/v1/tasks/{slow}/send", {"eof": True})


@fault
def vanishes_while_it_waits_and_its_work_ends(scene: Scene, thread: str) -> None:
    slow = scene.start(thread, command=["cat"], openStdin=True)
    with Session(scene, thread) as session:
        scene.note(thread, session.call("list"))
        waiting = session.begin("wait", ids=[slow], seconds=40)
        scene.api("POST", f"/v1/tasks/{slow}/send", {"eof": True})
        reset(waiting)


@fault
def vanishes_in_mid_body(scene: Scene, thread: str) -> None:
    with scene.connect() as talk:
        talk.sendall(scene.head(path=f"/mcp?thread={thread}", Content_Length="500") + b'{"jsonrpc": "2.0", ')


@fault
def vanishes_in_mid_head(scene: Scene, thread: str) -> None:
    with scene.connect() as talk:
        talk.sendall(scene.head()[:-40])


@fault
def vanishes_from_its_stream(scene: Scene, thread: str) -> None:
    with Session(scene, thread) as session:
        talk = scene.connect()
        talk.sendall(scene.head("GET", f"/mcp?thread={thread}", Content_Type="", Mcp_Session_Id=session.id))
        assert talk.recv(15).startswith(b"HTTP/1.1 200")
        reset(talk)
        scene.note(thread, session.call("list"))


@fault
def closes_its_half(scene: Scene, thread: str) -> None:
    """It has said all that it will say, and waits for the answer: it gets one, or is let go."""
    data = json.dumps(initialize()).encode()
    with scene.connect() as talk:
        talk.sendall(scene.head(Content_Length=str(len(data))) + data)
        talk.shutdown(socket.SHUT_WR)
        assert read_answer(talk).status in (0, 200)


@fault
def never_reads(scene: Scene, thread: str) -> None:
    with Session(scene, thread) as session:
        talks = [session.begin("list") for _ in range(20)]
        for talk in talks:
            reset(talk)
        scene.note(thread, session.call("list"))


@fault
def is_killed_between_answer_and_conversation(scene: Scene, thread: str) -> None:
    with Pipe(scene, thread) as pipe:
        pipe.call("list")
        pipe.process.send_signal(signal.SIGKILL)
        pipe.process.wait()


@fault
def leaves_in_mid_call(scene: Scene, thread: str) -> None:
    scene.start(thread, command="sleep 0.2")
    with Pipe(scene, thread) as pipe:
        pipe.send("tools/call", {"name": "wait", "arguments": {"seconds": 40}})
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        pipe.process.wait(LIMIT)


@fault
def closes_our_stdout(scene: Scene, thread: str) -> None:
    with Pipe(scene, thread) as pipe:
        assert pipe.process.stdout is not None
        pipe.process.stdout.close()
        pipe.send("tools/call", {"name": "list", "arguments": {}})
        pipe.process.wait(LIMIT)


@fault
def cancels_its_call(scene: Scene, thread: str) -> None:
    slow = scene.start(thread, command=["cat"], openStdin=True)
    with Pipe(scene, thread) as pipe:
        id = pipe.send("tools/call", {"name": "wait", "arguments": {"ids": [slow], "seconds": 40}})
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        pipe.write(json.dumps(cancelled).encode() + b"\n")
        scene.note(thread, pipe.call("list"))
        scene.api("POST", f"/v1/tasks/{slow}/send", {"eof": True})


# -- those who are not who they say


@each(
    no_token=({"Authorization": ""}, 401),
    wrong_token=({"Authorization": "Bearer wrong"}, 401),
    forged_thread_token=({"Authorization": "Bearer witness~0000"}, 401),
    rebound_name=({"Host": "evil.example"}, 421),
    other_port=({"Host": "127.0.0.1:1"}, 421),
    other_origin=({"Origin": "http://evil.example"}, 403),
    no_origin_at_all=({"Origin": "null"}, 403),
    form=({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    text=({"Content_Type": "text/plain"}, 415),
    accepts_nothing=({"Accept": "image/png"}, 406),
)
def at_the_gate(scene: Scene, thread: str, case: tuple[dict[str, str], int]) -> None:
    headers, status = case
    answer = scene.ask(initialize(), path=f"/mcp?thread={thread}", **headers)
    assert answer.status == status, answer
    assert b"result" not in answer.text, answer


@fault
def takes_anothers_session(scene: Scene, thread: str) -> None:
    with Session(scene, thread, Authorization=f"Bearer {scene.thread_token(thread)}") as session:
        for token in (scene.token, scene.thread_token("other")):
            headers = {"Mcp_Session_Id": session.id, "Authorization": f"Bearer {token}"}
            assert scene.ask(request("ping"), **headers).status == 404
            assert scene.ask(b"", "DELETE", **headers).status == 404
        scene.note(thread, session.call("list"))


@fault
def leads_its_token_elsewhere(scene: Scene, thread: str) -> None:
    """A token is for one thread, whatever the address says."""
    theirs = scene.start(thread, command="sleep 0.2")
    with Session(scene, thread, Authorization=f"Bearer {scene.thread_token('other')}") as session:
        refused = session.call("output", id=theirs)
        assert refused["isError"], refused
        assert not (refused.get("_meta") or {}).get("meantime/notices")


@each(get="tasks/get", cancel="tasks/cancel", result="tasks/result")
def asks_for_anothers_task(scene: Scene, thread: str, method: str) -> None:
    """It is not found, as one that never was; and it goes on."""
    with Session(scene, thread) as session, Session(scene, f"{thread}-thief") as thief:
        call = {"name": "start", "arguments": {"command": "sleep 0.3; echo mine"}, "task": {}}
        made = session.ask("tools/call", call)["result"]["task"]["taskId"]
        same(_error(thief.ask(method, {"taskId": id})) for id in (made, "t_" + "0" * 52, made[:-2]))
        answer = session.ask("tasks/result", {"taskId": made})
        assert "mine" in json.dumps(answer["result"]), answer


def _error(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["error"]["code"], answer["error"]["message"]


# -- those who lie about what they can do


def _modern(method: str, params: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
    prefix = "io.modelcontextprotocol"
    meta = {
        f"{prefix}/protocolVersion": MODERN,
        f"{prefix}/clientInfo": {"name": "faulty", "version": "1"},
        f"{prefix}/clientCapabilities": capabilities,
    }
    return request(method, {**params, "_meta": meta})


def _ask_modern(scene: Scene, thread: str, message: dict[str, Any]) -> Any:
    params = message["params"]
    headers = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": message["method"]}
    named = params.get("name") or params.get("taskId")
    if named:
        headers["Mcp_Name"] = named
    return scene.ask(message, path=f"/mcp?thread={thread}", **headers)


@fault
def knows_tasks_and_never_asks_for_them(scene: Scene, thread: str) -> None:
    """Then it is told, as everybody is."""
    declared = {"extensions": {EXTENSION: {}}}
    params = {"name": "start", "arguments": {"command": "true"}}
    made = _ask_modern(scene, thread, _modern("tools/call", params, declared)).message["result"]
    assert made["resultType"] == "task", made
    scene.promised(thread, made["taskId"])
    scene.end(made["taskId"])


@fault
def asks_for_tasks_that_it_does_not_know(scene: Scene, thread: str) -> None:
    answer = _ask_modern(scene, thread, _modern("tasks/get", {"taskId": "t_x"}, {}))
    assert "error" in answer.message, answer


@each(
    number={"protocolVersion": 7, "capabilities": {}, "clientInfo": {}},
    no_name={"protocolVersion": OLDER, "capabilities": {}},
    words={"protocolVersion": OLDER, "capabilities": "all", "clientInfo": "me"},
    list=[],
    deep={"protocolVersion": OLDER, "capabilities": {"experimental": {"a": [[[[]]]]}}, "clientInfo": {}},
)
def says_nonsense_of_itself(scene: Scene, thread: str, params: Any) -> None:
    answer = scene.ask(request("initialize", params), path=f"/mcp?thread={thread}")
    assert answer.status in (200, 400), answer
    assert "error" in answer.message, answer


@fault
def speaks_a_version_of_the_future(scene: Scene, thread: str) -> None:
    """It is told which one there is, and can go, or stay."""
    hello = initialize()
    hello["params"]["protocolVersion"] = "2999-01-01"
    answer = scene.ask(hello, path=f"/mcp?thread={thread}")
    assert answer.message["result"]["protocolVersion"] == OLDER, answer


@each(unknown="0" * 32, strange="../../etc/passwd", long="x" * 5_000)
def has_a_session_of_its_own_making(scene: Scene, thread: str, session: str) -> None:
    headers = {"Mcp_Session_Id": session, "Mcp_Protocol_Version": OLDER}
    assert scene.ask(request("tools/list"), path=f"/mcp?thread={thread}", **headers).status in (400, 404)


@fault
def opens_its_stream_twice(scene: Scene, thread: str) -> None:
    with Session(scene, thread) as session, scene.connect() as talk:
        path, headers = f"/mcp?thread={thread}", {"Content_Type": "", "Mcp_Session_Id": session.id}
        talk.sendall(scene.head("GET", path, **headers))
        assert talk.recv(15).startswith(b"HTTP/1.1 200")
        assert scene.ask(b"", "GET", path, **headers).status in (400, 409)
        scene.note(thread, session.call("list"))


# -- those whose words are no messages


@each(
    words=b"what?",
    half=b'{"jsonrpc": "2.0", "id": 1, "method": "pi',
    nothing=b"",
    number=b"7",
    list=b"[]",
    batch=b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    empty=b"{}",
    bytes=b"\xff\xfe\x00\x01",
    deep=b"[" * 50_000,
    older=b'{"id": 1, "method": "ping"}',
    no_method=b'{"jsonrpc": "2.0", "id": 1}',
    strange_id=b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}',
    strange_params=b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
    surrogates=b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":{}}}',
    endless_number=b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
)
def says_what_is_no_message(scene: Scene, thread: str, data: bytes) -> None:
    with Session(scene, thread) as session:
        answer = session.send(data)
        refused = 400 <= answer.status < 500 or (answer.status == 200 and "error" in answer.message)
        unknown = answer.status == 200 and answer.message.get("result", {}).get("isError")
        passed_over = answer.status == 202  # with an id that is none it is taken for a notification
        assert refused or unknown or passed_over, answer
        scene.note(thread, session.call("list"))


@fault
def says_no_message_into_a_pipe(scene: Scene, thread: str) -> None:
    with Pipe(scene, thread) as pipe:
        for data in (
            b"what?",
            b"[]",
            b"\xff\xfe",
            b"[" * 50_000,
            b"x" * (5 << 20),
            os.urandom(100).replace(b"\n", b""),
        ):
            pipe.write(data + b"\n")
            assert pipe.answer(None)["error"]["code"] == -32700
        scene.note(thread, pipe.call("list"))


@each(announced=True, unannounced=False)
def says_too_much(scene: Scene, thread: str, announced: bool) -> None:
    path, data = f"/mcp?thread={thread}", b"x" * 3_000_000
    if announced:
        assert scene.ask(data, path=path).status == 413
        return
    with scene.connect() as talk:
        talk.sendall(scene.head(path=path, Transfer_Encoding="chunked"))
        try:
            for _ in range(30):
                talk.sendall(b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000))
        except OSError:
            pass  # it is read no further
        assert read_answer(talk).status in (0, 413)


@each(more="4000000000", negative="-5", words="many")
def lies_about_its_length(scene: Scene, thread: str, length: str) -> None:
    with scene.connect() as talk:
        talk.sendall(scene.head(path=f"/mcp?thread={thread}", Content_Length=length) + b"{}")
        assert 400 <= read_answer(talk).status < 500


@fault
def has_a_head_without_end(scene: Scene, thread: str) -> None:
    with scene.connect() as talk:
        try:
            talk.sendall(b"POST /mcp HTTP/1.1\r\nX: " + b"y" * 300_000)
            status = read_answer(talk).status
        except OSError:
            status = 0
        assert status == 0 or 400 <= status < 500, status


@fault
def asks_for_what_there_is_not(scene: Scene, thread: str) -> None:
    with Session(scene, thread) as session:
        assert _error(session.ask("no/such"))[0] == -32601
        for name, given in (("no_such_tool", {}), ("start", {"command": 7})):
            answer = session.call(name, **given)
            scene.note(thread, answer)
            assert answer["isError"], answer
        assert scene.ask(b"{}", "PUT", f"/mcp?thread={thread}").status == 405
        assert until(lambda: session.call("list"), "it goes on")
