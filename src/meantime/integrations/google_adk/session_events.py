"""Events of an ADK session: what was said in them, and whether an answer is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.adk.events import Event
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from meantime.integrations.framework_talk.framework_talk import told_in
from meantime.kernel.notices import Notice

CONFIRMATION = "adk_request_confirmation"  # the call by which a tool asks for permission


def user(text: str) -> Content:
    return Content(role="user", parts=[Part(text=text)])


def of_notice(notice: Notice, invocation: str) -> Event:
    """Its id is the notice's, which a database refuses to take twice."""
    text = notice.message().text
    return Event(id=notice.id, invocation_id=invocation, author="user", content=user(text))


def spoken(event: Event) -> str:
    """Its text, without thoughts."""
    parts = event.content.parts if event.content else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def told(events: Iterable[Event]) -> set[str]:
    """The ids of the notices that a session holds: by their texts, as a service may give ids of its own."""
    return told_in(spoken(event) for event in events if event.author == "user")


def ends_open(events: Sequence[Event]) -> bool:
    """Something was said to the agent, or a tool has answered, and the agent has not said anything since."""
    for event in reversed(events):
        if event.content is not None and event.content.parts:
            return event.author == "user" or not event.is_final_response()
    return False


def open_calls(events: Iterable[Event]) -> list[FunctionCall]:
    """Calls without an answer: a confirmation that is waited for, or what a crash or a stop cut off."""
    calls: dict[str, FunctionCall] = {}
    for event in events:
        for call in event.get_function_calls():
            calls[call.id or ""] = call
        for answer in event.get_function_responses():
            calls.pop(answer.id or "", None)
    return list(calls.values())


def answered(call: FunctionCall, response: dict[str, Any]) -> Part:
    return Part(function_response=FunctionResponse(id=call.id, name=call.name, response=response))
