"""A session of the OpenAI Agents SDK in a file that only grows: whole after a crash, copied by a fork."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from meantime.integrations.agent_host.append_log import INTERRUPTED, AppendLog

_encode = msgspec.json.Encoder().encode
POPPED = b"null"  # a record that takes the item before it back


class ItemLog:
    """The SDK's Session. A record is an item, or says that the last one was taken back."""

    session_settings: SessionSettings | None = None

    def __init__(self, path: Path) -> None:
        self.session_id = path.stem
        self.log = AppendLog(path)
        self.items = _items(self.log)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return list(self.items if limit is None else self.items[-limit:] if limit else ())

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            self.log.append(*map(_encode, items))
            self.items += items

    async def pop_item(self) -> TResponseInputItem | None:
        if not self.items:
            return None
        self.log.append(POPPED)
        return self.items.pop()

    async def clear_session(self) -> None:
        while self.items:
            await self.pop_item()

    async def close_calls(self) -> None:
        """Answers the calls that a crash or a stop cut off: a provider refuses a call without its result."""
        given = [cast("dict[str, Any]", item) for item in self.items]
        answered = {item.get("call_id") for item in given if item.get("type") == "function_call_output"}
        cut = [
            item["call_id"]
            for item in given
            if item.get("type") == "function_call" and item.get("call_id") not in answered
        ]
        await self.add_items(
            [{"type": "function_call_output", "call_id": call, "output": INTERRUPTED} for call in cut]
        )


def copied(path: Path, copy: Path) -> None:
    """All that was said until now."""
    copy.touch(0o600)
    items = _items(AppendLog(path))
    if items:
        AppendLog(copy).append(*map(_encode, items))


def _items(log: AppendLog) -> list[TResponseInputItem]:
    found: list[TResponseInputItem] = []
    for record in log.records():
        if record == POPPED:
            found.pop()
        else:
            with suppress(msgspec.DecodeError):  # a crash may have cut it
                found.append(msgspec.json.decode(record))
    return found
