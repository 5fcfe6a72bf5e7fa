"""Meantime through its adapter for the Claude Agent SDK, whose sessions are Claude Code's files."""

from __future__ import annotations

from claude_agent_sdk import ClaudeAgentOptions
from meantime_site import SLOW, main
from workbench import model_url, state_folder

from meantime import Thread
from meantime.integrations.claude_agent_sdk import Talk


def talk_of(thread: Thread) -> Talk:
    project = state_folder() / "project"
    project.mkdir(exist_ok=True)
    env = {
        "ANTHROPIC_BASE_URL": model_url(), "ANTHROPIC_API_KEY": "none", "HOME": str(state_folder()),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    }  # fmt: skip
    options = ClaudeAgentOptions(
        cwd=project, env=env, tools=[], setting_sources=[], system_prompt="Be brief."
    )
    return Talk(options, thread, *SLOW, threshold=0.05)


main(talk_of)
