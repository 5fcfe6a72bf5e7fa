"""Agents of LangChain and deepagents pass every check of the public suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent

from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture

from .langchain_site import langchain_site

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_langchain_or_deepagents(check: Check, create: Callable[..., Any], tmp_path: Path):
    async with langchain_site(tmp_path, create) as site:
        await check(TalkFixture(site))
