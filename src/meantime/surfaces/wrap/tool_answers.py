"""The tools of a wrapped server, as the host sees them, and the answers that are ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from meantime.kernel.durations import duration

from .raw_messages import UNREADABLE, encoded, parts, raw, text

SENTENCE = (
    "A call that takes longer than {seconds:g} s continues in the background: the answer then names a task, "
    "and you are told the result when it ends."
)
STARTED = (
    "This call {why} continues in the background as task {id}. "
    "Do not call the tool again for it; go on with other work. {told}"
)
SLOW = "takes longer than {seconds:g} s and"
USUALLY_SLOW = "is of a tool that usually takes about {usual}, and"
BY_HOOKS = "You are told its result automatically when it ends."
BY_RESULTS = "Its result comes with the result of a later tool call of this server."
SERVER_INFO = "io.modelcontextprotocol/serverInfo"  # in a _meta
MOST_NAME = 64  # characters of a server's own name
_tools = msgspec.json.Decoder(list[dict[str, Raw]])


def listed(
    result: Raw,
    threshold: Callable[[str], float | None],
    *,
    keeps_schema: bool = False,
    offers_tasks: bool = False,
) -> Raw:
    """A result of tools/list. A tool that may go to the background says one sentence more, and promises no
    structured content, because a background answer has none, unless the client takes tasks of MCP
    (`keeps_schema`). With `offers_tasks` it can be called as one, by 2025-11-25. Everything else is
    unchanged."""
    whole = parts(result)
    try:
        tools = _tools.decode(whole["tools"])
    except (*UNREADABLE, KeyError):
        return result
    for tool in tools:
        seconds = threshold(text(tool.get("name")))
        if seconds is not None:
            if not keeps_schema:
                tool.pop("outputSchema", None)
            if offers_tasks:
                execution = parts(tool.get("execution", Raw()))
                tool["execution"] = raw({**execution, "taskSupport": "optional"})
            said = SENTENCE.format(seconds=seconds)
            tool["description"] = raw(f"{text(tool.get('description'))}\n\n{said}".strip())
    return encoded({**whole, "tools": raw(tools)})


def name_of(result: Raw) -> str:
    """A server's own name, in its introduction of itself, as part of a task's name."""
    whole = parts(result)
    info = whole.get("serverInfo") or parts(whole.get("_meta", Raw())).get(SERVER_INFO, Raw())
    name = text(parts(info).get("name"))[:MOST_NAME]
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in name).strip("-")


def background_answer(id: str, seconds: float, usual: float | None, *, hooks: bool, enveloped: bool) -> Raw:
    """`usual`: seconds, for a call that went to the background before its threshold. `enveloped`: the request
    was of the protocol whose results say that they are complete."""
    why = SLOW.format(seconds=seconds) if usual is None else USUALLY_SLOW.format(usual=duration(usual))
    said = STARTED.format(why=why, id=id, told=BY_HOOKS if hooks else BY_RESULTS)
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
