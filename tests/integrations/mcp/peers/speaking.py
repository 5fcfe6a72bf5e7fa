"""What the parts of the scripted server share: how it was started, its folder, and how it speaks."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

START, FOLDER, MODERN = sys.argv[1], Path(sys.argv[2]), "modern" in sys.argv[3:]
LOCK = threading.Lock()
cancelled: set[Any] = set()  # requests that the client does not want any more
answers: dict[Any, dict[str, Any]] = {}  # of the client, to what we asked it
heard = threading.Condition()  # one of both has changed
deaf = threading.Event()  # from now on it reads nothing more


def write(message: dict[str, Any]) -> None:
    line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def line(data: bytes) -> None:
    with LOCK:
        view = memoryview(data + b"\n")
        while view:
            view = view[os.write(1, view) :]


def log(name: str, text: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(text + "\n")


def text(value: str) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": value}]}
    return {**result, "resultType": "complete"} if MODERN else result


def wait_for(name: str) -> None:
    while not (FOLDER / name).exists():
        time.sleep(0.005)


def wait_heard(condition: Callable[[], bool]) -> None:
    with heard:
        heard.wait_for(condition)


def progress(token: Any, done: float, total: float | None = None, message: str = "") -> None:
    params: dict[str, Any] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    if message:
        params["message"] = message
    write({"method": "notifications/progress", "params": params})
