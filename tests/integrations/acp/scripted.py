"""A scripted agent that speaks ACP: a stand-in, for what real agents cannot be made to do.

`scripted.py FOLDER [HABIT…]`. A prompt is a list of steps in JSON, or anything, which is echoed. Its sessions
are files in the folder, so another process of it loads them. Every start leaves a line in `starts`, every
request one in `requests`. Standard library only.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER, HABITS = Path(sys.argv[1]), set(sys.argv[2:])
OPTIONS = {"allow_once": "Yes", "allow_always": "Always", "reject_once": "No"}
writing = threading.Lock()
answers: dict[int, Any] = {}
answered = threading.Condition()
cancelled: set[str] = set()


def note(name: str, line: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(f"{line}\n")


def write(message: dict[str, Any]) -> None:
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session: str, kind: str, **more: Any) -> None:
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **more}}
    write({"method": "session/update", "params": params})


def said(session: str, kind: str, text: str, **more: Any) -> None:
    update(session, kind, content={"type": "text", "text": text}, **more)


def wait(session: str, ready: Any) -> bool:
    """False: it was cancelled, and obeys."""
    while not ready():
        if session in cancelled and "deaf" not in HABITS:
            return False
        time.sleep(0.01)
    return True


class Stop(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


class Error(Exception):
    pass


class Turn:
    def __init__(self, session: str) -> None:
        self.session = session
        self.calls = 0
        self.usage: dict[str, Any] | None = None

    def take(self, steps: list[dict[str, Any]]) -> str:
        for step in steps:
            for verb, value in step.items():
                do = getattr(self, f"do_{verb}", None)
                if do is not None:
                    do(value, step)
        return "end_turn"

    def do_say(self, text: str, step: dict[str, Any]) -> None:
        for piece in step.get("pieces", [text]):
            said(self.session, "agent_message_chunk", piece)

    def do_think(self, text: str, step: dict[str, Any]) -> None:
        said(self.session, "agent_thought_chunk", text)

    def do_call(self, tool: str, step: dict[str, Any]) -> None:
        self.calls += 1
        id = f"call-{os.getpid()}-{self.calls}"
        update(
            self.session, "tool_call", toolCallId=id, title=tool, status="pending", rawInput=step.get("input")
        )
        allowed = "ask" not in step or self.allowed(id, tool, step)
        update(self.session, "tool_call_update", toolCallId=id, status="in_progress")
        content = [{"type": "content", "content": {"type": "text", "text": step.get("output", "")}}]
        status = "completed" if allowed and not step.get("failed") else "failed"
        update(self.session, "tool_call_update", toolCallId=id, status=status, content=content)

    def allowed(self, id: str, tool: str, step: dict[str, Any]) -> bool:
        kinds = step["ask"] if isinstance(step["ask"], list) else list(OPTIONS)
        options = [{"optionId": f"o-{kind}", "name": OPTIONS[kind], "kind": kind} for kind in kinds]
        call = {"toolCallId": id, "title": f"use {tool}", "rawInput": step.get("input")}
        number = id_of_request()
        params = {"sessionId": self.session, "toolCall": call, "options": options}
        write({"id": number, "method": "session/request_permission", "params": params})
        if step.get("die"):
            os.kill(os.getpid(), 9)
        with answered:
            answered.wait_for(lambda: number in answers)
        outcome = answers[number]["result"]["outcome"]
        note("outcomes", outcome.get("optionId", outcome["outcome"]))
        return "allow" in outcome.get("optionId", "")

    def do_plan(self, entries: list[str], step: dict[str, Any]) -> None:
        listed = [
            {"content": text, "priority": "low", "status": "completed" if place == 0 else "in_progress"}
            for place, text in enumerate(entries)
        ]
        update(self.session, "plan", entries=listed)

    def do_unknown(self, kind: str, step: dict[str, Any]) -> None:
        update(self.session, kind, something=1)

    def do_cost(self, amount: float, step: dict[str, Any]) -> None:
        cost = {"amount": amount, "currency": "USD"}
        update(self.session, "usage_update", used=1, size=10, cost=cost)

    def do_tokens(self, count: int, step: dict[str, Any]) -> None:
        self.usage = {"totalTokens": count, "inputTokens": count, "outputTokens": 0}

    def do_print(self, text: str, step: dict[str, Any]) -> None:
        with writing:
            print(text, flush=True)

    def do_flood(self, size: int, step: dict[str, Any]) -> None:
        sys.stderr.write("x" * 99 + "\n" + "y" * size + "\n")
        sys.stderr.flush()

    def do_big(self, size: int, step: dict[str, Any]) -> None:
        said(self.session, "agent_message_chunk", "z" * size)

    def do_child(self, name: str, step: dict[str, Any]) -> None:
        """One that leaves our group and our session, as careless tools do."""
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
        note(name, str(child.pid))

    def do_wait(self, name: str, step: dict[str, Any]) -> None:
        note("waits", name)
        if not wait(self.session, (FOLDER / name).exists):
            raise Stop("cancelled")

    def do_env(self, name: str, step: dict[str, Any]) -> None:
        said(self.session, "agent_message_chunk", os.environ.get(name, "unset"))

    def do_error(self, error: list[Any], step: dict[str, Any]) -> None:
        once = step.get("once")
        if once and (FOLDER / once).exists():
            return
        if once:
            (FOLDER / once).touch()
        raise Error(*error)

    def do_stop(self, reason: str, step: dict[str, Any]) -> None:
        raise Stop(reason)

    def do_die(self, number: int, step: dict[str, Any]) -> None:
        if "call" not in step:
            os.kill(os.getpid(), number)


def id_of_request() -> int:
    with answered:
        id_of_request.last += 1
        return id_of_request.last


id_of_request.last = 0


NUMBERS = itertools.count()


def file_of(session: str) -> Path:
    return FOLDER / f"{session}.session"


def prompt(params: dict[str, Any]) -> dict[str, Any]:
    session, text = params["sessionId"], params["prompt"][0]["text"]
    cancelled.discard(session)
    kept = json.loads(file_of(session).read_text())
    file_of(session).write_text(json.dumps([*kept, text]))
    turn = Turn(session)
    try:
        reason = turn.take(json.loads(text)) if text.startswith("[") else turn.take([{"say": f"echo {text}"}])
    except Stop as stop:
        reason = stop.reason
    return {"stopReason": reason, "usage": turn.usage}


def made(params: dict[str, Any], kept: list[str]) -> dict[str, Any]:
    session = f"s{next(NUMBERS)}-{os.getpid()}"  # several may be made at once
    file_of(session).write_text(json.dumps(kept))
    note("servers", json.dumps(params.get("mcpServers")))
    modes = [{"id": "ask", "name": "Ask"}, {"id": "free", "name": "Free"}]
    return {"sessionId": session, "modes": {"currentModeId": "free", "availableModes": modes}}


def loaded(params: dict[str, Any], *, replays: bool) -> dict[str, Any]:
    session = params["sessionId"]
    if not file_of(session).exists():
        raise Error(-32002, "Resource not found")
    if replays:
        for text in json.loads(file_of(session).read_text()):
            said(session, "user_message_chunk", text)
            said(session, "agent_message_chunk", "an old answer")
        update(session, "usage_update", used=1, size=10, cost={"amount": 5.0, "currency": "USD"})
    return {}


def serve(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        if "silent" in HABITS:
            threading.Event().wait()
        can = {name: {} for name in ("resume", "fork", "list") if name in HABITS}
        return {
            "protocolVersion": 7 if "newer" in HABITS else 1,
            "agentCapabilities": {"loadSession": "no-load" not in HABITS, "sessionCapabilities": can},
        }
    if method == "session/new":
        return made(params, [])
    if method == "session/fork" and "fork" in HABITS:
        return made(params, json.loads(file_of(params["sessionId"]).read_text()))
    if method == "session/load":
        return loaded(params, replays=True)
    if method == "session/resume" and "resume" in HABITS:
        return loaded(params, replays=False)
    if method == "session/list":
        return {"sessions": [{"sessionId": path.stem} for path in FOLDER.glob("*.session")]}
    if method == "session/set_mode":
        return {}
    if method == "session/prompt":
        return prompt(params)
    raise Error(-32601, "Method not found")


def answer(message: dict[str, Any]) -> None:
    note("requests", message["method"])
    try:
        write({"id": message["id"], "result": serve(message["method"], message["params"])})
    except Error as problem:
        code, text, *data = problem.args
        error = {"code": code, "message": text, **({"data": data[0]} if data else {})}
        write({"id": message["id"], "error": error})


def main() -> None:
    note("starts", str(os.getpid()))
    if "noisy" in HABITS:
        print("Welcome!\n{not json\n42\n[1]\n{}", flush=True)
    if "broken" in HABITS:
        sys.exit("no licence")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            with answered:
                answers[message["id"]] = message
                answered.notify_all()
        elif message["method"] == "session/cancel":
            cancelled.add(message["params"]["sessionId"])
        else:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


main()
