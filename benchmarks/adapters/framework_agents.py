"""An agent of each framework with one quick tool of its own: alone, and in a Talk. The models are those of
the adapters' tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from meantime import Thread
from meantime.testing.talk import ToolCall


class Conversation(NamedTuple):
    steps: list[Any]
    requests: list[Any]
    say: Callable[[str], Awaitable[Any]]
    tool: str = "look"

    def script(self, calls: int, turn: int) -> None:
        self.requests.clear()
        for number in range(calls):
            self.steps.append(ToolCall(self.tool, {"at": "x"}, f"call-{turn}-{number}"))
        self.steps.append("all is well")


Maker: TypeAlias = Callable[[Thread, bool], Awaitable[Conversation]]


def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


@asynccontextmanager
async def pydantic_ai(folder: Path) -> AsyncIterator[Maker]:
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from meantime.integrations.pydantic_ai import Talk

    module: Any = import_module("tests.integrations.pydantic_ai.pydantic_site")

    async def made(thread: Thread, bare: bool) -> Conversation:
        site = module.PydanticSite(folder)
        agent = Agent(FunctionModel(site.answer), instructions="Be helpful.", tools=[look])
        history: list[Any] = []

        async def say(text: str) -> Any:
            result = await agent.run(text, message_history=history)
            history[:] = result.all_messages()
            return result.output

        talk = None if bare else Talk(agent, thread)
        return Conversation(site.steps, site.requests, talk.say if talk else say)

    yield made


@asynccontextmanager
async def langchain(folder: Path) -> AsyncIterator[Maker]:
    from langchain.agents import create_agent
    from langchain.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver

    from meantime.integrations.langchain import Talk, TalkBackground

    module: Any = import_module("tests.frameworks.langchain_agents.langchain_site")

    async def made(thread: Thread, bare: bool) -> Conversation:
        model: Any = module.ScriptedModel()
        given: Any = {"tools": [tool(look)], "system_prompt": "Be helpful.", "checkpointer": InMemorySaver()}
        if not bare:
            background = TalkBackground(thread)
            talk = Talk(create_agent(model, middleware=[background], **given), background)
            return Conversation(model._steps, model._requests, talk.say)
        agent: Any = create_agent(model, **given)
        config: Any = {"configurable": {"thread_id": thread.id}}

        async def say(text: str) -> Any:
            result = await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, config)
            return result["messages"][-1].text

        return Conversation(model._steps, model._requests, say)

    yield made


@asynccontextmanager
async def openai_agents(folder: Path) -> AsyncIterator[Maker]:
    from meantime.integrations.openai_agents import Talk

    sdk: Any = import_module("agents")
    sdk.set_tracing_disabled(True)
    module: Any = import_module("tests.frameworks.openai_agents.openai_site")
    tool = sdk.function_tool(look)

    async def made(thread: Thread, bare: bool) -> Conversation:
        model: Any = module.ScriptedModel()
        agent = sdk.Agent("agent", instructions="Be helpful.", model=model, tools=[tool])
        session = sdk.SQLiteSession(thread.id)

        async def say(text: str) -> Any:
            return (await sdk.Runner.run(agent, text, session=session)).final_output

        talk = None if bare else Talk(agent, thread, session=session)
        return Conversation(model.steps, model.requests, talk.say if talk else say)

    yield made


@asynccontextmanager
async def agent_framework(folder: Path) -> AsyncIterator[Maker]:
    from agent_framework import Agent, tool

    from meantime.integrations.agent_framework import Talk

    module: Any = import_module("tests.frameworks.microsoft.scripted_client")
    looking = tool(look)

    async def made(thread: Thread, bare: bool) -> Conversation:
        client: Any = module.ScriptedClient()
        agent = Agent(client, "Be helpful.", tools=[looking])
        session = agent.create_session(session_id=thread.id)

        async def say(text: str) -> Any:
            return (await agent.run(text, session=session)).text

        talk = None if bare else Talk(agent, thread)
        return Conversation(client.steps, client.requests, talk.say if talk else say)

    yield made


@asynccontextmanager
async def google_adk(folder: Path) -> AsyncIterator[Maker]:
    from google.adk.agents import LlmAgent
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai.types import Content, Part

    from meantime.integrations.google_adk import Talk

    module: Any = import_module("tests.frameworks.google_adk.adk_site")

    async def made(thread: Thread, bare: bool) -> Conversation:
        model: Any = module.ScriptedModel(model="scripted")
        agent = LlmAgent(name="agent", model=model, instruction="Be helpful.", tools=[look])
        sessions = InMemorySessionService()
        if not bare:
            return Conversation(model._steps, model._requests, Talk(agent, thread, sessions=sessions).say)
        runner = Runner(app_name="bare", agent=agent, session_service=sessions)
        session = await sessions.create_session(app_name="bare", user_id="user", session_id=thread.id)

        async def say(text: str) -> Any:
            said = ""
            message = Content(role="user", parts=[Part(text=text)])
            async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
                said = (
                    "".join(part.text or "" for part in event.content.parts or ()) if event.content else said
                )
            return said

        return Conversation(model._steps, model._requests, say)

    yield made


@asynccontextmanager
async def claude_agent_sdk(folder: Path) -> AsyncIterator[Maker]:
    from dataclasses import replace
    from uuid import uuid4

    from claude_agent_sdk import ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool

    from meantime.integrations.claude_agent_sdk import Talk

    module: Any = import_module("tests.frameworks.claude_sdk.claude_site")
    api: Any = import_module("tests.frameworks.claude_sdk.scripted_api").ScriptedAPI()

    @tool("look", "Looks at something.", {"at": str})
    async def looking(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": look(**given)}]}

    async def made(thread: Thread, bare: bool) -> Conversation:
        options = module.options_for(
            folder, api.url, mcp_servers={"own": create_sdk_mcp_server("own", tools=[looking])},
            allowed_tools=["mcp__own"],
        )  # fmt: skip
        if not bare:
            return Conversation(api.steps, api.requests, Talk(options, thread).say, "mcp__own__look")
        session, begun = str(uuid4()), False

        async def say(text: str) -> Any:
            nonlocal begun
            given: Any = {"resume": session} if begun else {"session_id": session}
            begun, said = True, None
            async with ClaudeSDKClient(replace(options, **given)) as client:
                await client.query(text)
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        said = message.result
            return said

        return Conversation(api.steps, api.requests, say, "mcp__own__look")

    try:
        yield made
    finally:
        api.close()


AGENTS: dict[str, Callable[[Path], AbstractAsyncContextManager[Maker]]] = {
    "pydantic_ai": pydantic_ai,
    "langchain": langchain,
    "openai_agents": openai_agents,
    "claude_agent_sdk": claude_agent_sdk,
    "agent_framework": agent_framework,
    "google_adk": google_adk,
}
