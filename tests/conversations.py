"""A conversation in one dialect: what it hands off by its own tools, and everything that it is told."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.waiting import LIMIT

from meantime import Agent, Meantime, MeantimeError
from meantime.dialects import names

DIALECTS = names()
EMPTY = 3  # turns without a notice, in a row, after which no more is expected
SECONDS = r"(\d+m )?\d+s"

# How each dialect tells of an agent that did not come back. Meantime's own words depend on what is known.
_ERROR = {
    "background": rf'Background task {{id}} ".*" ended after {SECONDS}\.\nStatus: error\n',
    "asyncagents": (
        rf'✗ \*\*Agent ".*" failed in {SECONDS}\.\*\*\nTask Progress: \d/\d\nTask ID: {{id}}\nError: '
    ),
    "llxprt": r"---\nSystem Note: Async task '\w+' failed:\n\{{\n  \"agent_id\": \"{id}\",",
    "jaato": rf"Background task '{{id}}' \([\w.]+\) failed after {SECONDS}: ",
    "psi": rf"Background job {{id}} \(.*\) is failed after {SECONDS}\.\n",
}
LOST = {"meantime": r'<task-notification id="{id}\.1"/>\n".*" was lost\. ', **_ERROR}
FAILED = {"meantime": rf'<task-notification id="{{id}}\.1"/>\n".*" failed .*after {SECONDS}\. ', **_ERROR}
RESUMED = {
    "meantime": rf'<task-notification id="{{id}}\.2"/>\n".*" \(resume #1\) completed after {SECONDS}\. ',
    "background": rf'Resume #1 of background task {{id}} ".*" ended after {SECONDS}\.\nStatus: completed\n',
    "asyncagents": rf"✓ \*\*Resume #1 completed in {SECONDS}\.\*\*\nTask Progress: 1/1\nTask ID: {{id}}\n",
    "llxprt": r"---\nSystem Note: Async task '\w+' completed:\n\{{\n  \"agent_id\": \"{id}\",",
    "jaato": rf"Background task '{{id}}' \([\w.]+\) completed after {SECONDS}: ",
    "psi": rf"Background job {{id}} \(.*\) is completed after {SECONDS}\.\n",
}
WORDS_FAILED = {
    "meantime": "failed", "background": "error", "asyncagents": "error",
    "llxprt": "failed", "jaato": "failed", "psi": "failed",
}  # fmt: skip
WORDS_LOST = {**WORDS_FAILED, "meantime": "lost"}
# What a model's own resume of an ending that is not "completed" answers; "none" has no such tool.
REFUSED = {
    "meantime": "", "background": "not_completed", "asyncagents": "not_completed",
    "llxprt": "none", "jaato": "none", "psi": "retry_not_supported",
}  # fmt: skip


def says(texts: list[str], pattern: dict[str, str], dialect: str, id: str) -> bool:
    """Whether it was one text, and these words."""
    return len(texts) == 1 and re.match(pattern[dialect].format(id=re.escape(id)), texts[0]) is not None


class Conversation:
    def __init__(self, mt: Meantime, dialect: str, **works: Any) -> None:
        self.mt = mt
        self.dialect = dialect
        self.thread = mt.thread(f"conv-{dialect}")
        self.toolset = self.thread.toolset(dialect, **works)

    async def _call(self, tool: str, **arguments: Any) -> Any:
        said = await self.toolset.call(tool, arguments)
        assert not said.code, said.text
        return said

    async def start_agent(self, agent: str, prompt: str) -> str:
        """By the dialect's own tool; psi has none for agents, so there the host starts it."""
        asked = {"description": "a piece of work", "prompt": prompt, "agent": agent}
        match self.dialect:
            case "meantime":
                return (await self._call("start_agent", **asked)).data["id"]
            case "llxprt":
                asked = {"subagent_name": agent, "goal_prompt": prompt, "async": True}
                return (await self._call("task", **asked)).data["agentId"]
            case "jaato":
                given = {"plugin_name": "agents", "tool_name": agent, "arguments": {"prompt": prompt}}
                return (await self._call("startBackgroundTask", **given)).data["task_id"]
            case "psi":
                return (await self.thread.start(Agent(agent, prompt))).id
            case _:
                return (await self._call(f"{self.dialect}_task", **asked)).data["task_id"]

    async def told(self) -> list[str]:
        """Turn after turn, until nothing more comes."""
        texts: list[str] = []
        empty = 0
        while empty < EMPTY:
            async with self.thread.turn() as turn:
                messages = turn.render(self.dialect)
                await turn.ack()
            empty = 0 if messages else empty + 1
            texts += [message.text for message in messages]
            assert len(texts) < 20, f"it is told for ever: {texts}"
        return texts

    async def pending(self) -> list[str]:
        """What may still be told to it."""
        found = await self.mt.notices("unread", "leased", "parked", thread=self.thread.id)
        return [f"{notice.id} {notice.state}" for notice in found]

    async def word(self, id: str) -> str:
        """How the dialect's own tool says that it stands."""
        match self.dialect:
            case "meantime":
                listed = (await self._call("list", status="ended")).data["tasks"]
                return next(task["status"] for task in listed if task["id"] == id)
            case "llxprt":
                return (await self._call("check_async_tasks", task_id=id)).data["status"]
            case "jaato":
                return (await self._call("getBackgroundTaskStatus", task_id=id)).data["status"]
            case "psi":
                return (await self._call("inspect_job", job_id=id)).data["status"]
            case _:
                return (await self._call(f"{self.dialect}_output", task_id=id)).data["status"]

    async def refuses_to_resume(self, id: str, prompt: str) -> str:
        """By its own tool: empty where it goes on, otherwise the code. Dialects without one are "none"."""
        match self.dialect:
            case "meantime":
                return (await self.toolset.call("resume", {"id": id, "prompt": prompt})).code
            case "background" | "asyncagents":
                given = {"resume": id, "prompt": prompt}
                return (await self.toolset.call(f"{self.dialect}_task", given)).code
            case "psi":
                return (await self.toolset.command(f"/retry-job {id}")).code
            case _:
                return "none"

    async def resume(self, id: str, prompt: str) -> tuple[str, str]:
        """By its own tool, otherwise by the host: the code of the tool, then of the host."""
        code = await self.refuses_to_resume(id, prompt)
        if not code:
            return "", ""
        try:
            await self.thread.resume(id, prompt)
        except MeantimeError as refused:
            return code, refused.code
        return code, ""

    async def ended(self, id: str) -> None:
        (task,) = await self.thread.wait(id, timeout=LIMIT)
        assert task.ended, json.dumps(str(task))
