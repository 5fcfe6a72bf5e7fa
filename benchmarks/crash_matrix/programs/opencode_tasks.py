"""OpenCode: a server with one session that lasts. Its own background subagents do the work; or, with the
argument `meantime`, commands that it hands off through Meantime's MCP server and plugin."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from typing import Any

from workbench import converse, model_url, state_folder

LONGEST = 60.0  # seconds for an answer
OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "npm_config_registry": "http://127.0.0.1:9",
    "npm_config_fetch_retries": "0", "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "true",
}  # fmt: skip
OURS = sys.argv[1:] == ["meantime"]


def configure() -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "S", "models": {"m": {"name": "m"}},
        "options": {"baseURL": f"{model_url()}/v1", "apiKey": "none"},
    }  # fmt: skip
    config: dict[str, Any] = {
        "autoupdate": False, "share": "disabled", "snapshot": False, "model": "scripted/m",
        "small_model": "scripted/m", "enabled_providers": ["scripted"], "provider": {"scripted": provider},
        "permission": {"bash": "allow"},
    }  # fmt: skip
    (state_folder() / "opencode.json").write_text(json.dumps(config))


def serve() -> str:
    """The address of a server of its own."""
    words = [os.environ["CRASH_OPENCODE"], "serve", "--port", "0", "--hostname", "127.0.0.1"]
    server = subprocess.Popen(
        words, env={**os.environ, **OFFLINE}, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert server.stdout
    limit = threading.Timer(LONGEST, server.kill)
    limit.start()
    said = next(line for line in server.stdout if "listening on" in line)
    limit.cancel()
    return said.split()[-1]


def asked(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LONGEST) as answer:
        return json.loads(answer.read() or b"null")


def states(url: str, session: str) -> dict[str, str]:
    """Of each subagent's last tool call, which is the work; one that ended has said something after it."""
    found: dict[str, str] = {}
    busy = asked(f"{url}/session/status")
    for child in asked(f"{url}/session/{session}/children"):
        name = re.search("alpha|beta", child["title"])
        parts = [part for each in asked(f"{url}/session/{child['id']}/message") for part in each["parts"]]
        tools = [part["state"]["status"] for part in parts if part["type"] == "tool"]
        if name:
            found[name[0]] = "busy" if child["id"] in busy else tools[-1] if tools else "unknown"
    return found


def meantime_states() -> dict[str, str]:
    words = [os.environ["CRASH_MEANTIME"], "ps", "-a", "--json"]
    listed = json.loads(subprocess.run(words, capture_output=True, timeout=LONGEST, check=True).stdout)[
        "tasks"
    ]
    return {name: task["status"] for task in listed for name in re.findall("alpha|beta", json.dumps(task))}


def open_session() -> tuple[str, str]:
    """The address of the server, and its one session, which is a new one at first."""
    known = state_folder() / "session"
    if not known.exists():
        configure()
    for words in (["up"], ["install", "opencode", "--yes"]) if OURS else ():
        meantime = [os.environ["CRASH_MEANTIME"], *words]
        subprocess.run(meantime, stdout=subprocess.DEVNULL, timeout=LONGEST, check=True)
    url = serve()
    if not known.exists():
        known.write_text(asked(f"{url}/session", {})["id"])
    session = known.read_text()
    asked(f"{url}/session/{session}")  # its project is opened with the first question
    return url, session


async def main() -> None:
    url, session = await asyncio.to_thread(open_session)

    async def say(text: str) -> str:
        body = {"parts": [{"type": "text", "text": text}]}
        return str(await asyncio.to_thread(asked, f"{url}/session/{session}/message", body))[:200]

    async def state() -> dict[str, str]:
        return await asyncio.to_thread(meantime_states if OURS else lambda: states(url, session))

    await converse(say, state)


asyncio.run(main())
