"""A Claude agent whose model follows a script: the SDK's own Claude Code, with a home of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from meantime import Meantime, Thread
from meantime.integrations.claude_agent_sdk import Talk

from .scripted_api import ScriptedAPI


def options_for(folder: Path, url: str, **more: Any) -> ClaudeAgentOptions:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "HOME": str(folder),
    }
    given: dict[str, Any] = {"tools": [], "setting_sources": [], "system_prompt": "Be helpful.", **more}
    return ClaudeAgentOptions(cwd=project, env=env, **given)


class ClaudeSite:
    def __init__(self, folder: Path, api: ScriptedAPI) -> None:
        self._folder = folder
        self._api = api
        self.requests = api.requests

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Meantime]:
        return Meantime.open(self._folder / "talk.db", **options)

    def script(self, *steps: Any) -> None:
        self._api.steps += steps

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talk:
        return Talk(options_for(self._folder, self._api.url), thread, *functions, **options)
