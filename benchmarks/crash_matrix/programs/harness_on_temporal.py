"""Pydantic AI harness: BackgroundTools on Temporal. A prompt is a workflow, and its tools are activities that
Temporal retries. The server keeps its state in a file; it is killed with everything else."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import workbench
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_harness import BackgroundTools
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from workbench import converse, model_url, state_folder

PATIENCE = 60.0
QUEUE = "work"
# An activity whose worker is gone is retried when its heartbeat has been missing for so long.
HELD: Any = {
    "temporal": {"start_to_close_timeout": timedelta(minutes=5), "heartbeat_timeout": timedelta(seconds=5)}
}

model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{model_url()}/v1", api_key="none"))
main_agent = Agent(model, name="main", capabilities=[BackgroundTools(), TemporalDurability()])
for work in (workbench.alpha, workbench.beta):
    main_agent.tool_plain(metadata={"background": True, **HELD})(work)


@workflow.defn
class Prompt(PydanticAIWorkflow):
    __pydantic_ai_agents__ = [main_agent]  # noqa: RUF012  as its documentation has it

    @workflow.run
    async def run(self, text: str, history: list[ModelMessage]) -> list[ModelMessage]:
        return (await main_agent.run(text, message_history=history)).all_messages()


def serve() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("temporal")
    words = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port),
             "--db-filename", str(state_folder() / "temporal.db"), "--log-level", "error"]  # fmt: skip
    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return f"127.0.0.1:{port}"


async def connected(address: str) -> Client:
    until = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            client = await Client.connect(address, plugins=[PydanticAIPlugin()])
            await client.count_workflows()
            return client
        except Exception:
            if asyncio.get_running_loop().time() > until:
                raise
            await asyncio.sleep(0.2)


async def main() -> None:
    client = await connected(serve())
    number = state_folder() / "prompts"

    async def say(text: str) -> str:
        """After the prompts before it, whose messages it goes on from."""
        last = int(number.read_text()) if number.exists() else 0
        handle: Any = client.get_workflow_handle_for(Prompt.run, f"prompt-{last}")
        history: list[ModelMessage] = await handle.result() if last else []
        number.write_text(str(last + 1))
        made = await client.execute_workflow(
            Prompt.run, args=[text, history], id=f"prompt-{last + 1}", task_queue=QUEUE
        )
        return str(made[-1])[:200]

    async def state() -> dict[str, str]:
        """By Temporal: what became of the activities of the first prompt."""
        found: dict[str, str] = {}
        described: Any = await client.get_workflow_handle("prompt-1").describe()
        for name in ("alpha", "beta"):
            waits = any(name in str(each) for each in described.raw_description.pending_activities)
            found[name] = "running" if waits else described.status.name.lower()
        return found

    async with Worker(
        client, task_queue=QUEUE, workflows=[Prompt], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        await converse(say, state)


asyncio.run(main())
