"""A stand-in for `claude -p`, without a model: the prompt carries the script, `@@[{"say": "hello"}, …]@@`.

It writes down what it was given, keeps its sessions as files, and speaks the events of Claude Code. Run as
`python program.py FOLDER -p …`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def event(kind: str, **more: Any) -> None:
    sys.stdout.write(json.dumps({"type": kind, "session_id": SESSION, **more}) + "\n")
    sys.stdout.flush()


def note(name: str, value: object) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(json.dumps(value) + "\n")


def flag(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


def message(id: str, block: dict[str, Any], tokens: int = 5) -> None:
    usage = {"input_tokens": tokens - 1, "output_tokens": 1}
    event("assistant", message={"id": id, "role": "assistant", "content": [block], "usage": usage})


def perform(number: int, step: dict[str, Any]) -> None:
    if "say" in step:
        message(f"m{number}", {"type": "text", "text": step["say"]})
    if "call" in step:
        id = f"c{number}"
        message(f"m{number}", {"type": "tool_use", "id": id, "name": step["call"], "input": {"n": number}})
        result = {"type": "tool_result", "tool_use_id": id, "content": "x" * step.get("answer", 2)}
        event("user", message={"role": "user", "content": [result]})
    if "raw" in step:
        os.write(1, (step["raw"] * step.get("times", 1)).encode("utf-8", "surrogateescape"))
    if "gate" in step:
        note("waiting", step["gate"])
        while not (FOLDER / step["gate"]).exists():
            time.sleep(0.01)
    if "child" in step:
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        note("pids", child.pid)
    if "run" in step:
        done = subprocess.run(step["run"], capture_output=True, text=True, timeout=120, check=False)
        note("ran", {"code": done.returncode, "out": done.stdout, "err": done.stderr})
    if "stubborn" in step:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
    if "once" in step:  # only the first time that it is met
        mark = FOLDER / f"once-{step['once']}"
        if not mark.exists():
            mark.touch()
            end(error=step["error"], status=step.get("status"))
    if "signal" in step:
        os.kill(os.getpid(), step["signal"])
    if "error" in step and "once" not in step:
        end(error=step["error"], status=step.get("status"))
    if "exit" in step:
        sys.stderr.write(step.get("stderr", "") + "\n")
        raise SystemExit(step["exit"])


def end(text: str = "", error: str = "", status: int | None = None) -> None:
    event(
        "result", subtype="success", is_error=bool(error), result=error or text, api_error_status=status,
        total_cost_usd=0.25, usage={"input_tokens": 50, "output_tokens": 50}, permission_denials=[],
    )  # fmt: skip
    raise SystemExit(bool(error))


def main() -> None:
    prompt = sys.stdin.buffer.read().decode()
    given = {"arguments": sys.argv[2:], "environment": dict(os.environ), "prompt": prompt}
    note("given", {**given, "pid": os.getpid(), "cwd": os.getcwd()})
    old = FOLDER / f"session-{flag('--resume')}"
    if "--resume" in sys.argv and not old.exists():
        sys.stderr.write(f"No conversation found with session ID: {flag('--resume')}\n")
        raise SystemExit(1)
    history = json.loads(old.read_text()) if "--resume" in sys.argv else []
    event("system", subtype="init")
    found = re.search(r"@@(\[.*\])@@", prompt, re.DOTALL)
    steps = json.loads(found[1]) if found else [{"say": f"heard {len(history)}: {prompt}"}]
    (FOLDER / f"session-{SESSION}").write_text(json.dumps([*history, prompt]))
    for number, step in enumerate(steps):
        perform(number, step)
    said = [step["say"] for step in steps if "say" in step]
    end(said[-1] if said else "")


FOLDER = Path(sys.argv[1])
SESSION = flag("--session-id") or flag("--resume")
if __name__ == "__main__":
    main()
