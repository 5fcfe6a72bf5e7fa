"""An agent of agent-framework passes every check of the public suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content
from say_table import check_row

from meantime import Meantime
from meantime.integrations.agent_framework import Talk
from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture, ToolCall

from .scripted_client import AgentFrameworkSite, ScriptedClient

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*experimental.*"),
]


@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_agent_framework_that_talks(check: Check, tmp_path: Path):
    await check(TalkFixture(AgentFrameworkSite(tmp_path)))


async def test_the_model_gets_the_reason_of_a_refusal_where_the_client_allows_it(tmp_path: Path):
    site = AgentFrameworkSite(tmp_path)
    site.client.function_invocation_configuration["include_detailed_errors"] = True
    site.script(ToolCall("crawl", {"site": 5}), "I see")
    async with site.opened() as mt:
        assert await site.talk(mt.thread("t"), TalkFixture(site).gates.crawl).say("go") == "I see"
    assert "expected string, got int" in site.requests[1].results[0]


async def test_what_was_said_is_not_serialized_to_keep_what_is_new(monkeypatch: pytest.MonkeyPatch):
    written: list[Content] = []
    to_dict = Content.to_dict

    def counted(content: Content, *given: Any, **more: Any) -> dict[str, Any]:
        written.append(content)
        return to_dict(content, *given, **more)

    monkeypatch.setattr(Content, "to_dict", counted)
    client = ScriptedClient()
    client.steps = ["one", "two", "three"]
    async with Meantime.open(":memory:") as mt:
        talk = Talk(Agent(client, "Be helpful."), mt.thread("t"))
        assert [await talk.say(text) for text in ("a", "b", "b")] == ["one", "two", "three"]
    assert client.requests[-1].prompts == ["a", "b", "b"]
    assert not written


async def test_the_guide_says_what_comes_out_of_say(tmp_path: Path):
    await check_row("agent-framework (Microsoft)", AgentFrameworkSite(tmp_path))
