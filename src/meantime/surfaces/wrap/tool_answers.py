"""The tools of a wrapped server, as the host sees them, and the answers that are ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from .raw_messages import UNREADABLE, encoded, parts, raw, text

SENTENCE = (
    "A call that takes longer than {seconds:g} s continues in the background: the answer then names a task, "
    "and you are told the result when it ends."
)
STARTED = (
    "This call takes longer than {seconds:g} s and continues in the background as task {id}. "
    "Do not call the tool again for it; go on with other work. {told}"
)
BY_HOOKS = "You are told its result automatically when it ends."
BY_RESULTS = "Its result comes with the result of a later tool call of this server."
_tools = msgspec.json.Decoder(list[dict[str, Raw]])


def listed(result: Raw, threshold: Callable[[str], float | None]) -> Raw:
    """A result of tools/list. A tool that may go to the background promises no structured content, because
    a background answer has none, and says one sentence more. Everything else is unchanged."""
    whole = parts(result)
    try:
        tools = _tools.decode(whole["tools"])
    except (*UNREADABLE, KeyError):
        return result
    for tool in tools:
        seconds = threshold(text(tool.get("name")))
        if seconds is not None:
            tool.pop("outputSchema", None)
            said = SENTENCE.format(seconds=seconds)
            tool["description"] = raw(f"{text(tool.get('description'))}\n\n{said}".strip())
    return encoded({**whole, "tools": raw(tools)})


def background_answer(id: str, seconds: float, *, hooks: bool, enveloped: bool) -> Raw:
    """`enveloped`: the request was of the protocol whose results say that they are complete."""
    said = STARTED.format(seconds=seconds, id=id, told=BY_HOOKS if hooks else BY_RESULTS)
    result: dict[str, Any] = {"content": [{"type": "text", "text": said}], "_meta": {"meantime/task": id}}
    return raw({**result, "resultType": "complete"} if enveloped else result)


def with_notices(result: Raw, texts: list[str]) -> Raw | None:
    """The result with a text more for each notice, behind its own content. None: it has no content."""
    whole = parts(result)
    content = bytes(whole.get("content", b"")).strip()
    if not content.startswith(b"["):
        return None
    more = b",".join(bytes(raw({"type": "text", "text": one})) for one in texts)
    inner = content[1:-1].strip()
    joined = b"[" + inner + (b"," if inner else b"") + more + b"]"
    return encoded({**whole, "content": Raw(joined)})
