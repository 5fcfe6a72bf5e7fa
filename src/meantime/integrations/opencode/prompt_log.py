"""The log of one task's session: when each prompt was first given, and what was received."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.integrations.agent_host.append_log import AppendLog


class PromptEntry(Struct, omit_defaults=True):
    prompt: str = ""
    at: float = 0.0
    heard: str = ""


class PromptLog:
    """A file that only grows, in the task's own folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._log = AppendLog(folder / "opencode.jsonl")
        self._prompts: dict[str, float] = {}
        self._heard = set[str]()
        for entry in self._log.readable(PromptEntry):
            if entry.prompt:
                self._prompts.setdefault(entry.prompt, entry.at)
            self._heard.add(entry.heard)

    def was_given(self, prompt: str) -> bool:
        return prompt in self._prompts

    def first_given(self, prompt: str) -> float:
        """On disk before it is given for the first time: from it come the ids of its message."""
        if prompt not in self._prompts:
            self._prompts[prompt] = time.time()
            self._append(PromptEntry(prompt=prompt, at=self._prompts[prompt]))
            self._log.sync()
        return self._prompts[prompt]

    def is_news(self, id: str) -> bool:
        """True once for each: a line that a former owner has received is not repeated."""
        if id in self._heard:
            return False
        self._heard.add(id)
        self._append(PromptEntry(heard=id))
        return True

    def _append(self, entry: PromptEntry) -> None:
        self._log.append(msgspec.json.encode(entry))
