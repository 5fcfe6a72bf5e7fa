"""A server with one scripted agent, and a client that speaks Agent Protocol by hand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import HttpDoor, Meantime
from meantime.kernel.lines import Kind, Line
from meantime.kernel.questions import PERMISSION, Question
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Site:
    def __init__(self, mt: Meantime, door: HttpDoor, client: httpx.AsyncClient, host: ScriptedHost) -> None:
        self.mt, self.door, self.client, self.host = mt, door, client, host
        self.gate = asyncio.Event()  # a slow turn ends when it is set
        self.begun = asyncio.Event()

    async def turn(self, prompt: Prompt, hearer: Hearer) -> str:
        text = prompt.text.splitlines()[-1]
        if "may I" in text:
            choices = {"choices": PERMISSION, "kind": "permission", "subject": "bash"}
            reply = await hearer.ask(Question(id="q-1", text="May I run it?", **choices))
            return f"allowed: {reply.allows}, by {reply.by}"
        if "slow" in text:
            self.begun.set()
            await self.gate.wait()
        if "fail" in text:
            raise ValueError("it broke")
        if "call" in text:
            hearer.line(
                Line(role="assistant", kind=Kind.CALL, tool="grep", arguments={"for": "x"}, call="c1")
            )
            hearer.line(Line(role="tool", kind=Kind.RESULT, tool="grep", text="x.py:1", call="c1"))
        return f"done: {text}"

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return await self.client.request(method, f"/agent-protocol{path}", json=body, **more)

    async def thread(self, **body: Any) -> str:
        answer = await self.ask("POST", "/threads", body)
        assert answer.status_code == 200, answer.text
        return answer.json()["thread_id"]

    async def run(self, thread: str, text: str, **more: Any) -> dict[str, Any]:
        answer = await self.ask("POST", f"/threads/{thread}/runs", saying(text, **more))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def joined(self, run: dict[str, Any]) -> dict[str, Any]:
        answer = await self.ask("GET", f"/threads/{run['thread_id']}/runs/{run['run_id']}/join")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def status(self, run: dict[str, Any]) -> str:
        answer = await self.ask("GET", f"/threads/{run['thread_id']}/runs/{run['run_id']}")
        assert answer.status_code == 200, answer.text
        return answer.json()["status"]


def saying(text: Any, **more: Any) -> dict[str, Any]:
    return {"assistant_id": "explore", "input": {"messages": [{"role": "user", "content": text}]}, **more}


@pytest.fixture
async def site(tmp_path) -> AsyncIterator[Site]:
    sites: list[Site] = []
    host = ScriptedHost(lambda prompt, hearer: sites[0].turn(prompt, hearer))
    agents = {"explore": HostedAgent(AgentSettings(runner="python", description="Looks"), host)}
    async with (
        Meantime.open(tmp_path / "work.db", agents=agents) as mt,
        mt.serve(port=0, folder=tmp_path) as door,
        httpx.AsyncClient(
            base_url=door.url,
            headers={"x-api-key": door.token},
            timeout=LIMIT,
            verify=NO_TLS,
            trust_env=False,
        ) as client,
    ):
        sites.append(Site(mt, door, client, host))
        yield sites[0]
