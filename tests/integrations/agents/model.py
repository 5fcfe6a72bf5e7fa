"""A model on loopback that says what the prompt tells it to say, for real agents.

The prompt carries the script, a list of steps in JSON: `@@[{"tool": "bash", "arguments": {…}},
{"text": "done"}]@@`, or the path of a file that holds it: `%%/path/steps.json%%`; `script(…)` writes one.
On a terminal a prompt is short, and names a script that the test has put into `scripts`: `%%name%%`.
Nothing is kept between questions: the step is the number of the model's own messages since the last script,
so sessions, forks and restarts go on side by side. After the last step it echoes, so a message that somebody
injected is seen in the answer. `asked` is what it was asked, in order: what reached the model, and how often,
is judged there.

A step is what the model does once:
    {"text": "…"}                           says it; in "chunks": 4 pieces, "chunk_delay": 0.1 seconds apart
    {"tool": "bash", "arguments": {…}}      calls a tool; {"tools": [{"tool": …, "arguments": …}, …]} several
    {"recall": true}                        says every text that the scripts of this conversation had
    {"error": 429, "retry_after": 1}        refuses, each time it is asked
and any step may have
    "errors": 2, "error": 500               refuses so many times, then does the rest
    "delay": 0.5, "wait_file": "/path"      thinks so long; or until that file is there
    "hang": true, "reset": true             never answers; or breaks off in the middle of what it says
    "usage": {"input": 10, "output": 5}     the tokens that it counts, else 1 and 1
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from .serving import handler
from .wires.words import Said

SCRIPT = re.compile(r"@@(\[.*?\])@@|%%([^%\s]+)%%", re.DOTALL)

# However a host escapes what it was given: as JSON, as HTML, or with a backslash in the tag.
IDS = re.compile(r'task-notification id=(?:\\*"|&quot;)([\w.-]+)')


def script(*steps: dict[str, Any]) -> str:
    return f"@@{json.dumps(steps)}@@"


class Asked(NamedTuple):
    """One question to the model."""

    tools: tuple[str, ...]
    said: tuple[Said, ...]
    answer: dict[str, Any]
    at: float  # when it was asked, by the monotonic clock

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.said)


class Model:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.scripts: dict[str, list[dict[str, Any]]] = {}
        self.thinking = 0  # questions that it will answer later, or never
        self.before_answer: Callable[[Asked], None] = lambda asked: None
        self.closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        # A client that is killed between its connect and our accept would hold up the server, and its close.
        self._server.socket.settimeout(1.0)
        self._lock = threading.Lock()
        # By script and step: an agent that tries again may say its prompt again, or not.
        self._refused: Counter[tuple[str, int]] = Counter()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def turns(self) -> list[Asked]:
        """What the agent itself asked: titles and the like are asked without tools."""
        return [asked for asked in self.asked if asked.tools]

    def answer(self, tools: list[str], said: list[Said]) -> dict[str, Any]:
        found, place = _step(said, self.scripts) if tools else ({"text": "A title"}, ("", 0))
        step: dict[str, Any] = dict(found)
        with self._lock:
            refused = step.get("errors")
            if refused is not None:
                if self._refused[place] >= refused:
                    step.pop("error", None)
                self._refused[place] += 1
            self.asked.append(Asked(tuple(tools), tuple(said), step, time.monotonic()))
            asked = self.asked[-1]
        self.before_answer(asked)
        return step


def _step(said: list[Said], scripts: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, int]]:
    """A script that the model itself repeats, or a tool, is none. Of two in one message the last one holds:
    some agents join what was said after a break to what was said before."""
    for place in range(len(said) - 1, -1, -1):
        named = list(SCRIPT.finditer(said[place].text)) if said[place].role == "user" else []
        if named:
            found = named[-1]
            steps = scripts.get(found[2]) or json.loads(found[1] or Path(found[2]).read_text())
            done = sum(part.role == "assistant" for part in said[place:])
            if done < len(steps):
                step = {"text": _recalled(said)} if steps[done].get("recall") else steps[done]
                return step, (found[0], done)
            break
    # Only what was told is to look like a notice, in transcripts and in what is asked next.
    echo = said[-1].text[-300:].replace('<task-notification id="', '<echoed-notification "') if said else ""
    return {"text": f"ECHO {echo}"}, ("", 0)


def _recalled(said: list[Said]) -> str:
    own = "\n".join(one.text for one in said if one.role == "user")
    steps = [step for found in SCRIPT.finditer(own) if found[1] for step in json.loads(found[1])]
    return " ".join(step["text"] for step in steps if "text" in step)
