"""The part of its conversation that Gemini CLI's model still has, which is less than its transcript holds.

The file has one JSON object a line and is only appended to. A line is a message; or it replaces all messages
before it, as after a turn that failed or was interrupted; or it takes back all from one message on. And a
prompt that begins in certain ways is left out, whole, when the session is resumed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any, cast

from . import transcript_search
from .hook_events import is_kept

MOST = 64 << 20  # bytes of its end
ID = re.compile(rb'\{"id":"([^"\\]{1,200})"')  # how a message begins


def found(path: str, since: Mapping[str, int], session: str = "") -> set[str] | None:
    """As transcript.found. All that counts for a notice comes after the place where it was told."""
    if not path.endswith(".jsonl"):
        return transcript_search.found(path, since)  # an older version's, which is written anew each time
    wanted = [id.encode() for id in since]
    messages: dict[bytes, set[bytes]] = {}  # in their order, with the ids that are in each
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not keep us
        with open(file, "rb") as lines:
            about = os.fstat(file)
            if not stat.S_ISREG(about.st_mode):
                return None
            begin = min(since.values(), default=0)
            lines.seek(max(begin if begin <= about.st_size else 0, about.st_size - MOST))
            for line in lines:
                _follow(messages, line, wanted)
    except (OSError, ValueError):
        return None
    return {id.decode() for ids in messages.values() for id in ids}


def _follow(messages: dict[bytes, set[bytes]], line: bytes, wanted: list[bytes]) -> None:
    message = ID.match(line)
    if message:
        seen = _seen(line, wanted)
        messages[message[1]] = seen if seen and _is_kept(_parsed(line)) else set()
    elif line.startswith(b'{"$rewindTo"'):
        _rewind(messages, str(_parsed(line).get("$rewindTo")).encode())
    elif line.startswith(b'{"$set"') and b'"messages"' in line:
        _replace(messages, _parsed(line).get("$set"), wanted)


def _rewind(messages: dict[bytes, set[bytes]], to: bytes) -> None:
    """An id that is not known means all of them."""
    for id in list(messages)[list(messages).index(to) if to in messages else 0 :]:
        del messages[id]


def _replace(messages: dict[bytes, set[bytes]], update: Any, wanted: list[bytes]) -> None:
    given = cast("dict[str, Any]", update).get("messages") if isinstance(update, dict) else None
    if not isinstance(given, list):
        return
    messages.clear()
    for number, message in enumerate(cast("list[Any]", given)):
        if isinstance(message, dict):
            one = cast("dict[str, Any]", message)
            seen = _seen(json.dumps(one, ensure_ascii=False).encode(errors="replace"), wanted)
            messages[str(one.get("id", number)).encode()] = seen if _is_kept(one) else set()


def _seen(text: bytes, wanted: list[bytes]) -> set[bytes]:
    return {id for id in wanted if transcript_search.has(text, id)}


def _is_kept(message: dict[str, Any]) -> bool:
    return message.get("type") != "user" or is_kept(_text(message.get("content")))


def _text(content: Any) -> str:
    """A result of a tool begins with a name in brackets there; here it is enough that it begins."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_text, cast("list[Any]", content)))
    if isinstance(content, dict):
        part = cast("dict[str, Any]", content)
        return str(part["text"]) if "text" in part else "[part]"
    return ""


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(line)
    except ValueError:  # it is being written
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
