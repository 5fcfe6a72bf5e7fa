"""Events of the ADK as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.adk.events import Event

from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import as_text, jsonable

from .session_events import CONFIRMATION, spoken


def lines(events: Iterable[Event]) -> Iterator[Line]:
    for event in events:
        if event.author != "user":
            yield from of_agent(event)
        elif text := spoken(event):
            yield Line(role="user", text=text)


def of_agent(event: Event) -> Iterator[Line]:
    """The agent's words and calls, and a tool's answer. A request for a confirmation is a question."""
    for part in event.content.parts or () if event.content else ():
        if part.text:
            yield Line(role="assistant", kind=Kind.THOUGHT if part.thought else Kind.TEXT, text=part.text)
        call, answer = part.function_call, part.function_response
        if call is not None and call.name != CONFIRMATION:
            given = jsonable(call.args).value
            yield Line(
                role="assistant", kind=Kind.CALL, tool=call.name or "", call=call.id or "", arguments=given
            )
        if answer is not None and not _waits(event, answer.id):
            given = answer.response or {}
            text = as_text(jsonable(given.get("result", given)).value)
            yield Line(
                role="tool",
                kind=Kind.RESULT,
                tool=answer.name or "",
                call=answer.id or "",
                text=text,
                failed="error" in given,
            )


def _waits(event: Event, call: str | None) -> bool:
    """A tool that has not run yet: the answer only says that it needs a confirmation."""
    return call in (event.actions.requested_tool_confirmations or {})
