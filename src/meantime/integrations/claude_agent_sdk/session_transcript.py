"""The transcript that Claude Code keeps of a session: the notices in it, and whether an answer is missing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import msgspec

_ONE = re.compile(r'<task-notification id="([^"]+)"')
_SEVERAL = re.compile(r'<task-notifications ids="([^"]+)"/>')


def joined(notices: Mapping[str, str]) -> str:
    """Several notices as one text, whose first line names them: what stands further down was written by
    tasks, and is not searched."""
    if len(notices) == 1:
        return next(iter(notices.values()))
    return "\n\n".join([f'<task-notifications ids="{" ".join(notices)}"/>', *notices.values()])


def transcript_path(session: str, env: Mapping[str, str]) -> Path | None:
    """The file of a session, in whichever folder the agent worked; None where there is none yet.

    env: what the options set; the rest is the environment of this process.
    """
    return next(config_folder(env).glob(f"projects/*/{session}.jsonl"), None)


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its files."""
    seen = {**os.environ, **env}
    return Path(seen.get("CLAUDE_CONFIG_DIR") or Path(seen.get("HOME") or Path.home()) / ".claude")


def entries(path: Path | None) -> list[dict[str, Any]]:
    """The entries of the conversation itself, oldest first. A line that is not whole yet is left out."""
    if path is None or not path.exists():
        return []
    found: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines():
        try:
            entry: object = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(entry, dict):
            given = cast("dict[str, Any]", entry)
            if given.get("type") in ("user", "assistant", "attachment") and not given.get("isSidechain"):
                found.append(given)
    return found


def told_in_transcript(kept: Iterable[dict[str, Any]]) -> set[str]:
    """The ids of the notices that it holds, as prompts or as the context of a hook."""
    found: set[str] = set()
    for entry in kept:
        for text in _given(entry):
            if one := _ONE.match(text):
                found.add(one[1])
            elif several := _SEVERAL.match(text):
                found.update(several[1].split())
    return found


def _given(entry: dict[str, Any]) -> Iterator[str]:
    """The texts that the agent was given; what it said itself and what tools answered are none."""
    if entry["type"] == "user":
        content = entry.get("message", {}).get("content")
        yield from (
            [content]
            if isinstance(content, str)
            else (str(block.get("text")) for block in content or () if block.get("type") == "text")
        )
    elif entry["type"] == "attachment" and isinstance(entry["attachment"].get("content"), list):
        yield from (text for text in entry["attachment"]["content"] if isinstance(text, str))


def ends_unanswered(kept: Iterable[dict[str, Any]]) -> bool:
    """Something was said to the agent, and it has not answered it, or only with an error of its provider."""
    last = next((entry for entry in reversed(list(kept)) if entry["type"] != "attachment"), None)
    if last is None:
        return False
    if last["type"] == "user" or last.get("isApiErrorMessage"):
        return True
    content = last.get("message", {}).get("content")
    return isinstance(content, list) and any(
        block.get("type") == "tool_use" for block in cast("Any", content)
    )


def ends_with_notices(kept: Sequence[dict[str, Any]]) -> bool:
    """A hook has told something, and a crash cut the agent's answer off."""
    last = takewhile(lambda entry: entry["type"] == "attachment", reversed(kept))
    return bool(told_in_transcript(last))


def last_prompt(kept: Iterable[dict[str, Any]]) -> str | None:
    """The last thing that it was told, if it has not answered it."""
    every = list(kept)
    said = [text for entry in every if entry["type"] == "user" for text in _given(entry)]
    return said[-1] if said and ends_unanswered(every) else None
