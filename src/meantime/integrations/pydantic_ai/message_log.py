"""A session's model messages on disk, exactly, as they grow: a line for what is new.

`add` is more messages, `all` is all of them (a history processor rewrote them), `result` is the answer of
one tool before the message that carries it is there, and `steer` is what was said in the middle of a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_core import from_json, to_json

from meantime.integrations.agent_host.append_log import INTERRUPTED, AppendLog


class MessageLog:
    def __init__(self, path: Path) -> None:
        self._kept = AppendLog(path)
        self._known: list[ModelMessage] = []

    @property
    def path(self) -> Path:
        return self._kept.path

    def load(self) -> Loaded:
        loaded = Loaded()
        for record in self._kept.records():
            name, _, data = record.partition(b" ")
            loaded.take(name, data)
        self._known = list(loaded.messages)
        return loaded

    def grow(self, messages: Sequence[ModelMessage]) -> None:
        """Writes what is new. The same messages are nearly always the same objects."""
        known = self._known
        same = len(known) <= len(messages) and all(
            old is new or old == new for old, new in zip(known, messages, strict=False)
        )
        if not same:
            self._kept.append(b"all " + _dump(messages))
        elif len(messages) > len(known):
            self._kept.append(b"add " + _dump(messages[len(known) :]))
        self._known = list(messages)

    def answered(self, part: ModelRequestPart) -> None:
        self._kept.append(b"result " + _dump([ModelRequest(parts=[part])]))

    def steered(self, text: str) -> None:
        self._kept.append(b"steer " + to_json(text))

    def sync(self) -> None:
        self._kept.sync()


class Loaded:
    """The contents of a session. Its end may be open: calls without results, and messages that nobody has
    read.
    """

    def __init__(self) -> None:
        self.messages: list[ModelMessage] = []
        self._results: list[ModelRequestPart] = []
        self._steered: list[str] = []

    def take(self, name: bytes, data: bytes) -> None:
        if name == b"steer":
            self._steered.append(from_json(data))
            return
        messages = ModelMessagesTypeAdapter.validate_json(data)
        if name == b"result":
            self._results += [part for message in messages for part in _parts(message)]
            return
        self.messages = messages if name == b"all" else [*self.messages, *messages]
        if any(isinstance(message, ModelRequest) for message in messages):
            self._results.clear()  # the message that carries them is here
            for said in _said(messages):
                if said in self._steered:
                    self._steered.remove(said)

    @property
    def open_calls(self) -> list[ToolCallPart]:
        """The calls of the last response that have no result."""
        last = self.messages[-1] if self.messages else None
        if not isinstance(last, ModelResponse):
            return []
        done = {part.tool_call_id for part in self._results if isinstance(part, ToolReturnPart)}
        return [call for call in last.tool_calls if call.tool_call_id not in done]

    def whole(self) -> list[ModelMessage]:
        """Valid as the beginning of a request: what has no result says that it was interrupted."""
        messages = repair_messages([*self.messages, *self._known_results()])
        unheard = [ModelRequest(parts=[UserPromptPart(text)]) for text in self._steered]
        return [*messages, *unheard]

    def waiting_for(self, call: str) -> list[ModelMessage]:
        """As `whole`, but this one call is still to be answered."""
        done = [part for message in self._known_results() for part in message.parts]
        lost = [one for one in self.open_calls if one.tool_call_id != call]
        more = [
            ToolReturnPart(tool_name=one.tool_name, content=INTERRUPTED, tool_call_id=one.tool_call_id)
            for one in lost
        ]
        request = [ModelRequest(parts=[*done, *more])] if done or more else []
        return [*repair_messages(self.messages, repair_last_response=False), *request]

    def _known_results(self) -> list[ModelRequest]:
        return [ModelRequest(parts=list(self._results))] if self._results else []


def write(path: Path, messages: Sequence[ModelMessage]) -> None:
    """A new session that begins with these."""
    path.touch(0o600)
    if messages:
        AppendLog(path).append(b"all " + _dump(messages))


def _dump(messages: Sequence[ModelMessage]) -> bytes:
    """A tool may have returned anything; what is not JSON is kept as text, which is what the model saw."""
    return ModelMessagesTypeAdapter.dump_json(list(messages), fallback=str)


def _parts(message: ModelMessage) -> Sequence[ModelRequestPart]:
    return message.parts if isinstance(message, ModelRequest) else ()


def _said(messages: Iterable[ModelMessage]) -> list[Any]:
    found = [part for message in messages for part in _parts(message)]
    return [part.content for part in found if isinstance(part, UserPromptPart)]
