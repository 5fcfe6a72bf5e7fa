"""Bodies of Agent Protocol, and the messages in them. Fields that change nothing here are ignored; those that
would be ignored silently at the client's cost are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Kind, Line
from meantime.kernel.model import Json
from meantime.kernel.payloads import as_text
from meantime.kernel.questions import Question
from meantime.surfaces.agent_runs.conversations import AgentMessage, Busy
from meantime.surfaces.http.schemas import Body

META = "agent_protocol"  # the key of a task's meta that holds the metadata of its run
MOST_MESSAGES = 10_000
_USER, _AGENT = frozenset({"user", "human"}), frozenset({"assistant", "ai"})
_BUSY: dict[str | None, Busy] = {
    None: "enqueue", "enqueue": "enqueue", "reject": "reject", "interrupt": "interrupt",
    "rollback": "interrupt",
}  # fmt: skip
_UNSUPPORTED = (
    "webhook",
    "after_seconds",
    "checkpoint",
    "checkpoint_id",
    "interrupt_before",
    "interrupt_after",
)

Metadata = dict[str, Any]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
Offset = Annotated[int, Meta(ge=0, le=1_000_000)]


class ProtocolBody(Body, forbid_unknown_fields=False, rename=lambda name: name):
    """Clients of every version send fields that this server does not know."""


class ThreadCreate(ProtocolBody):
    thread_id: str | None = None
    metadata: Metadata | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: Json = None
    supersteps: Json = None


class ThreadPatch(ProtocolBody):
    metadata: Metadata | None = None


class ThreadSearch(ProtocolBody):
    metadata: Metadata | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    ids: Annotated[list[str], Meta(max_length=1_000)] | None = None
    values: Json = None
    limit: Limit = 10
    offset: Offset = 0


class HistoryBody(ProtocolBody):
    limit: Limit = 10


class AssistantSearch(ProtocolBody):
    metadata: Metadata | None = None
    graph_id: str | None = None
    name: str | None = None
    limit: Limit = 10
    offset: Offset = 0


class RunCreate(ProtocolBody):
    assistant_id: str
    input: Json = None
    command: Json = None
    metadata: Metadata | None = None
    multitask_strategy: Literal["reject", "rollback", "interrupt", "enqueue"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    stream_mode: str | list[str] | None = None
    webhook: Json = None
    after_seconds: Json = None
    checkpoint: Json = None
    checkpoint_id: Json = None
    interrupt_before: Json = None
    interrupt_after: Json = None

    @property
    def busy(self) -> Busy:
        return _BUSY[self.multitask_strategy]

    def check(self) -> None:
        for name in _UNSUPPORTED:
            if getattr(self, name) not in (None, [], 0):
                raise InvalidInput(
                    f"{name} is not supported here.", hint=f"Leave {name} out.", code="unsupported"
                )
        if (self.input is None) == (self.command is None):
            raise InvalidInput("A run has either input or command.", hint='Send {"messages": […]} as input.')

    def said(self) -> AgentMessage:
        """The last message is the prompt. Earlier ones are a conversation that the agent continues."""
        messages = _messages(self.input)
        if messages[-1].role != "user" or not messages[-1].text.strip():
            raise InvalidInput("The last message must be the user's, with a text.", hint=_HINT)
        meta: dict[str, Json] = {META: self.metadata} if self.metadata else {}
        return AgentMessage(messages[-1].text, tuple(messages[:-1]), meta)

    def answer(self, question: Question | None) -> str:
        """The text of `command: {"resume": …}`, as an answer to this question."""
        command: Json = self.command
        given = cast("dict[str, Json]", command) if isinstance(command, dict) else {}
        if set(given) - {"resume"} or given.get("resume") is None:
            raise InvalidInput('command can only be {"resume": …}.', hint="It answers an interrupt.")
        return _answer(given["resume"], question)


_HINT = 'Send {"messages": [{"role": "user", "content": "…"}]}.'


def _messages(given: Json) -> Sequence[Line]:
    found: Json = cast("dict[str, Json]", given).get("messages") if isinstance(given, dict) else given
    if isinstance(found, str | dict):
        found = [found]
    if not isinstance(found, list) or not found:
        raise InvalidInput("input has no messages.", hint=_HINT)
    if len(cast("list[Json]", found)) > MOST_MESSAGES:
        raise InvalidInput(f"input has more than {MOST_MESSAGES} messages.", hint="Send a summary of them.")
    return [_line(one) for one in cast("list[Json]", found)]


def _line(given: Json) -> Line:
    if isinstance(given, str):
        return Line(role="user", text=given)
    if not isinstance(given, dict):
        raise InvalidInput("A message is an object with role and content.", hint=_HINT)
    message = cast("dict[str, Json]", given)
    role = message.get("role") or message.get("type")
    text = _text(message.get("content"))
    if role in _USER:
        return Line(role="user", text=text)
    if role == "tool":
        name = message.get("name")
        tool = name if isinstance(name, str) else "tool"
        return Line(role="tool", kind=Kind.RESULT, tool=tool, text=text)
    if role in _AGENT:
        return Line(role="assistant", text="\n".join([text, *_calls(message)]).strip())
    if role == "system":
        return Line(role="system", text=text)
    raise InvalidInput(f"{str(role)[:40]!r} is not a role of a message.", hint="Use user, assistant or tool.")


def _calls(message: dict[str, Json]) -> list[str]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    found = [cast("dict[str, Json]", one) for one in cast("list[Json]", calls) if isinstance(one, dict)]
    return [f"→ {one.get('name')} {as_text(one.get('args'))}" for one in found]


def _text(content: Json) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts: list[str] = []
    for block in cast("list[Json]", content) if isinstance(content, list) else [content]:
        if isinstance(block, str):
            parts.append(block)
            continue
        said = cast("dict[str, Json]", block) if isinstance(block, dict) else {}
        if said.get("type") != "text" or not isinstance(said.get("text"), str):
            kind = str(said.get("type"))[:40]
            raise InvalidInput(f"Content of the type {kind!r} is not supported.", hint="Send texts.")
        parts.append(said["text"])
    return "\n".join(parts)


def _answer(given: Json, question: Question | None) -> str:
    if (
        isinstance(given, dict)
        and question is not None
        and set(cast("dict[str, Json]", given)) == {question.id}
    ):
        given = cast("dict[str, Json]", given)[question.id]
    if isinstance(given, bool):
        return "yes" if given else "no"
    decided = _decision(given)
    if decided:
        return decided
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()


def _decision(given: Json) -> str:
    """The one decision of LangChain's human-in-the-loop middleware."""
    match given:
        case {"decisions": [{"type": "approve"}]}:
            return "allow"
        case {"decisions": [{"type": "reject", "message": str(why)}]} if why:
            return f"reject: {why}"
        case {"decisions": [{"type": "reject"}]}:
            return "reject"
        case _:
            return ""
