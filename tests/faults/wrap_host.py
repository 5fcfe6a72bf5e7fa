"""A host with a wrapped server, as a process that can be killed. It writes down what it reads.

    python -m tests.faults.wrap_host <folder> <threshold>

Each line of its stdin is the name of a tool to call. It ends when its wrap does, or when its stdin ends. Ids
begin at 1 in every life: an answer of another life would be taken for one of this life's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT

from .wrap_ledger import THREAD, note

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def main() -> None:
    folder, threshold = Path(sys.argv[1]), sys.argv[2]
    server = [sys.executable, "-m", "tests.faults.wrap_server", str(folder)]
    options = ["--wrap", "--threshold", threshold, "--thread", THREAD]
    wrap = subprocess.Popen(
        [sys.executable, "-m", "meantime", "mcp", *options, "--", *server],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert wrap.stdin is not None
    assert wrap.stdout is not None
    note(folder, "wrap", str(wrap.pid))
    marks: dict[int, str] = {}

    def say(**message: Any) -> None:
        assert wrap.stdin is not None
        wrap.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        wrap.stdin.flush()

    def listen() -> None:
        assert wrap.stdout is not None
        for line in wrap.stdout:
            take(folder, line, marks)
        note(folder, "cut", str(os.getpid()))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    say(id=0, method="initialize", params=HELLO)
    say(method="notifications/initialized")
    for number, line in enumerate(sys.stdin, 1):
        tool = line.strip()
        marks[number] = tool.partition("-")[2]
        note(folder, "sent", marks[number])
        say(id=number, method="tools/call", params={"name": tool, "arguments": {}})
    wrap.stdin.close()
    wrap.wait(LIMIT)


def take(folder: Path, line: bytes, marks: dict[int, str]) -> None:
    message = json.loads(line)
    if message.get("id") == 0:
        note(folder, "greeted", str(os.getpid()), json.dumps(message.get("error", "")))
        return
    mark = marks.pop(message.get("id"), None)
    if mark is None:
        note(folder, "stray", "", line.decode())
        return
    if "error" in message:
        note(folder, "error", mark, message["error"]["message"])
        return
    own, *told = [block["text"] for block in message["result"]["content"]]
    for text in told:
        note(folder, "told", str(os.getpid()), text)
    task = message["result"].get("_meta", {}).get("meantime/task")
    note(folder, "background" if task else "result", mark, task or own)


if __name__ == "__main__":
    main()
