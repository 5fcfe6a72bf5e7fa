"""Records docs/pictures/wrap.svg again: one slow tool of an MCP server, without and with the wrap.

    python tools/record_wrap.py

Both halves are real runs, of the same server and the same client. The client gives up after TIMEOUT seconds,
as agents do. The picture has what was measured in its `desc`, and is drawn from that alone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as XML

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "wrap.svg"
WORK, TIMEOUT, THRESHOLD, PAUSE = 12.0, 8.0, 2.0, 1.5  # seconds
LIMIT = 90.0  # seconds for one answer
SERVER = """
import json, sys, threading, time
def say(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
def call(id, name):
    if name == "index":
        time.sleep(float(sys.argv[1]))
    say(id, {"content": [{"type": "text", "text": {"index": "4,217 files indexed"}.get(name, "found")}]})
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "search", "version": "1"}
        say(asked["id"], {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif asked.get("method") == "tools/call":
        threading.Thread(target=call, args=(asked["id"], asked["params"]["name"]), daemon=True).start()
"""
STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
.head { font-weight: 600; font-size: 15px; } .small { font-size: 11px; fill: #59636e; }
.on { fill: #ffffff; font-weight: 600; font-size: 12px; }
.panel { fill: #ffffff; stroke: #d1d9e0; } .axis { stroke: #d1d9e0; } .mark { stroke: #1f2328; }
.wait { fill: #9a6700; } .bad { fill: #cf222e; } .free { fill: #1a7f37; } .work { fill: #0969da; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .small { fill: #9198a1; } .on { fill: #ffffff; }
.panel { fill: #0d1117; stroke: #3d444d; } .axis { stroke: #3d444d; } .mark { stroke: #f0f6fc; }
.wait { fill: #9e6a03; } .bad { fill: #da3633; } .free { fill: #238636; } .work { fill: #1f6feb; } }
"""
WIDE, LEFT, RIGHT, PANEL = 860.0, 84.0, 24.0, 178.0  # pixels


class Bar(NamedTuple):
    """The part of a row between two moments, in seconds."""

    row: int  # 0 is the agent, 1 the server
    begin: float
    end: float
    kind: str
    text: str


class Facts(NamedTuple):
    """Seconds since the call."""

    gave_up: float  # without the wrap
    handed_off: float  # with it: the answer that names the task
    looks: list[float]  # calls that were answered meanwhile
    told: float
    said: str  # what the model is told at the hand-off


class Client:
    """The least that an MCP client does."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._count = 0

    def send(self, method: str, **params: Any) -> int:
        self._count += 1
        asked = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return self._count

    def answer(self, limit: float) -> dict[str, Any] | None:
        """The next one; None where there is none in time."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], limit)[0]:
            return None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("The server has ended.")
        return json.loads(line)

    def call(self, tool: str, limit: float) -> str | None:
        self.send("tools/call", name=tool, arguments={})
        found = self.answer(limit)
        return None if found is None else "\n".join(one["text"] for one in found["result"]["content"])


@contextmanager
def connected(words: list[str], environ: dict[str, str]) -> Iterator[Client]:
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ,
        bufsize=0,
    )
    try:
        client = Client(process)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        client.send("initialize", **hello, clientInfo={"name": "picture", "version": "1"})
        if client.answer(LIMIT) is None:
            raise RuntimeError(f"No handshake within {LIMIT:g} s.")
        yield client
    finally:
        process.kill()
        process.communicate()


def record() -> Facts:
    server = [sys.executable, "-c", SERVER, str(WORK)]
    with connected(server, dict(os.environ)) as client:
        began = time.monotonic()
        if client.call("index", TIMEOUT) is not None:
            raise RuntimeError("The tool was quicker than the client's patience.")
        gave_up = time.monotonic() - began
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ,
            "MEANTIME_HOME": f"{folder}/home",
            "MEANTIME_CONFIG": f"{folder}/config.toml",
        }
        Path(folder, "config.toml").write_text("[http]\nport = 0\n")
        meantime = [sys.executable, "-m", "meantime"]
        try:
            options = ["--wrap", "--threshold", str(THRESHOLD), "--thread", "picture", "--"]
            with connected([*meantime, "mcp", *options, *server], environ) as client:
                return _with_the_wrap(client, gave_up)
        finally:
            subprocess.run([*meantime, "down"], env=environ, capture_output=True, timeout=LIMIT, check=False)


def _with_the_wrap(client: Client, gave_up: float) -> Facts:
    began = time.monotonic()
    said = client.call("index", LIMIT)
    handed_off = time.monotonic() - began
    if said is None or "continues in the background" not in said:
        raise RuntimeError(f"The call did not go to the background: {said}")
    looks: list[float] = []
    while time.monotonic() - began < LIMIT:
        time.sleep(PAUSE)  # what the agent does between two calls
        found = client.call("look", LIMIT) or ""
        at = time.monotonic() - began
        if "4,217 files indexed" in found:
            return Facts(round(gave_up, 1), round(handed_off, 1), looks, round(at, 1), said)
        looks.append(round(at, 1))
    raise RuntimeError("The agent was never told.")


def draw(facts: Facts) -> str:
    span = max(facts.told, WORK) + 1.5
    height = 2 * PANEL + 36
    svg = XML.Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDE:g} {height:g}", "role": "img"},
    )
    XML.SubElement(svg, "title").text = "A slow tool of an MCP server, without and with meantime mcp --wrap"
    XML.SubElement(svg, "desc").text = json.dumps(facts._asdict())
    XML.SubElement(svg, "style").text = STYLE
    given_up = facts.gave_up
    _panel(
        svg, 12, "Before: the agent waits, gives up, and the work is lost", span,
        [Bar(0, 0, given_up, "wait", "waits for the tool"), Bar(1, 0, given_up, "work", "works")],
        {given_up: f"timeout after {given_up:g} s: the tool needs {WORK:g} s"}, "bad", [],
    )  # fmt: skip
    off = facts.handed_off
    bars = [
        Bar(0, 0, off, "wait", "waits"),
        Bar(0, off, facts.told, "free", "does other work"),
        Bar(1, 0, WORK, "work", "works: the same call, sent once"),
    ]
    marks = {off: f"{off:g} s: it is a task", facts.told: f"{facts.told:g} s: told once"}
    title = "After: the call goes on in the background, and the agent is told once"
    _panel(svg, PANEL + 24, title, span, bars, marks, "free", facts.looks)
    XML.indent(svg)
    return XML.tostring(svg, "unicode") + "\n"


def _panel(
    svg: XML.Element, top: float, title: str, span: float, bars: list[Bar], marks: dict[float, str],
    kind: str, looks: list[float],
) -> None:  # fmt: skip
    def x(at: float) -> float:
        return round(LEFT + at / span * (WIDE - LEFT - RIGHT), 1)

    def put(name: str, text: str = "", **given: Any) -> None:
        fields = {key.replace("_", "-"): str(one) for key, one in given.items()}
        if "kind" in fields:
            fields["class"] = fields.pop("kind")
        XML.SubElement(svg, name, fields).text = text or None

    put("rect", x=4, y=top, width=WIDE - 8, height=PANEL, rx=8, kind="panel")
    put("text", title, x=20, y=top + 26, kind="head")
    for row, name in enumerate(("agent", "server")):
        put("text", name, x=20, y=top + 67 + row * 34)
    for bar in bars:
        y, begin = top + 50 + bar.row * 34, x(bar.begin)
        put("rect", x=begin, y=y, width=round(x(bar.end) - begin, 1), height=26, rx=4, kind=bar.kind)
        put("text", bar.text, x=begin + 8, y=y + 17, kind="on")
    for at in looks:
        put("circle", cx=x(at), cy=top + 70, r=2.5, fill="#ffffff")
    for second in range(0, int(span) + 1, 2):
        put("line", x1=x(second), y1=top + 122, x2=x(second), y2=top + 127, kind="axis")
        put("text", f"{second} s", x=x(second), y=top + 140, kind="small", text_anchor="middle")
    for at, said in marks.items():
        is_late = x(at) > WIDE / 2
        put("line", x1=x(at), y1=top + 44, x2=x(at), y2=top + 118, kind="mark")
        where = {"x": x(at) + (-6 if is_late else 6), "text_anchor": "end" if is_late else "start"}
        put("text", said, y=top + 163, **where)
    put("circle", cx=WIDE - 24, cy=top + 21, r=6, kind=kind)


def facts_of(svg: str) -> Facts:
    """The facts that a picture was drawn from."""
    found = XML.fromstring(svg).find("{http://www.w3.org/2000/svg}desc")
    assert found is not None
    assert found.text is not None
    return Facts(**json.loads(found.text))


if __name__ == "__main__":
    PICTURE.write_text(draw(record()), "utf-8")
