"""Thirty OpenCode sessions at once on one server: how many ended, how soon after the last word of the model
it was on record, and how often the stream of events broke. Beside it the same turns, without us."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx

from meantime import Agent, Handle, Limits, Meantime, Settings
from meantime.ports.session import AgentSettings

from .measure import folder, p50, table
from .scripted import Asked, Model, Running, needs_opencode, script

SESSIONS = 30
AT_ONCE = Settings(limits=Limits(per_thread=-1, total=-1, per_kind={"agent": -1}))
THINKS = 1.0  # seconds, of the model


async def run() -> None:
    if not needs_opencode():
        return
    model = Model()
    with folder() as path:
        (path / "opencode").mkdir()
        server = await asyncio.to_thread(Running, path / "opencode", model)
        try:
            server.session(script({"text": "warm"}))
            bare = await _bare(server)
            ours = await _ours(server, path)
        finally:
            server.kill()
            model.close()
    table(
        f"{SESSIONS} OpenCode sessions at once, each with one tool and {THINKS:g} s of the model",
        ["", "ended", "all in", "on record after the last word, p50", "worst", "the stream broke"],
        [bare, ours],
    )


def _steps(number: int) -> str:
    call = {"tool": "bash", "arguments": {"command": "true", "description": "nothing"}, "delay": THINKS}
    return f"bench-{number}. " + script(call, {"text": f"done {number}"})


async def _bare(server: Running) -> list[str]:
    began = time.perf_counter()
    async with httpx.AsyncClient(base_url=server.url, timeout=300, trust_env=False) as client:

        async def one(number: int) -> bool:
            session = (await client.post("/session", json={})).json()["id"]
            parts = [{"type": "text", "text": _steps(number)}]
            answer = (await client.post(f"/session/{session}/message", json={"parts": parts})).json()
            return f"done {number}" in str(answer["parts"])

        ended = await asyncio.gather(*(one(number) for number in range(SESSIONS)))
    return ["the server alone", f"{sum(ended)}", f"{time.perf_counter() - began:.1f} s", "", "", ""]


async def _ours(server: Running, path: Path) -> list[str]:
    spoken: dict[str, float] = {}

    def last_word(asked: Asked) -> None:
        said = asked.answer.get("text", "")
        if said.startswith("done"):
            spoken[said] = time.time()

    server.model.before_answer = last_word
    settings = AgentSettings(runner="opencode", url=server.url, cwd=str(server.project))
    began = time.perf_counter()
    async with Meantime.open(path / "work.db", settings=AT_ONCE, agents={"worker": settings}) as mt:
        thread = mt.thread("bench")
        started = [await thread.start(Agent("worker", _steps(number))) for number in range(SESSIONS)]
        tasks = [await _ended(handle) for handle in started]
        took = time.perf_counter() - began
        breaks = _breaks(mt)
    good = [task for task in tasks if getattr(task.outcome, "result", "") in spoken]
    late = [task.run.ended_at - spoken[task.outcome.result] for task in good]
    return [
        "Meantime", f"{len(good)}", f"{took:.1f} s", f"{p50(late) * 1e3:.0f} ms", f"{max(late) * 1e3:.0f} ms",
        f"{breaks} times",
    ]  # fmt: skip


async def _ended(handle: Handle) -> Any:
    return await handle.wait()


def _breaks(mt: Meantime) -> int:
    """How often something may have been missed."""
    runner: Any = mt._runtime.engine.runner("agent")  # pyright: ignore
    (remote,) = runner.agents["worker"].host._servers.values()
    return remote._wire[1].breaks
