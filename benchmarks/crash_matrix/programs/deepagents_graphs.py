"""deepagents: the graphs of one deployment. The agent that talks launches the others as async subagents."""

from __future__ import annotations

import workbench
from deepagents import AsyncSubAgent, create_deep_agent
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="m", base_url=f"{workbench.model_url()}/v1", api_key="none", use_responses_api=False)  # pyright: ignore
alpha = create_agent(model, tools=[workbench.alpha])
beta = create_agent(model, tools=[workbench.beta])
main = create_deep_agent(
    model,
    subagents=[
        AsyncSubAgent(name="alpha", description="Does the work alpha.", graph_id="alpha"),
        AsyncSubAgent(name="beta", description="Does the work beta.", graph_id="beta"),
    ],
)
