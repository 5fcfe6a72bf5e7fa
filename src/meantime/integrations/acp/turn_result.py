"""How a turn ended, from what the agent answered. Every agent reports a failure of its model differently."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from meantime.integrations.agent_host.host_errors import failed
from meantime.integrations.agent_host.json_values import mapping
from meantime.kernel.model import Failed
from meantime.kernel.provider_errors import FAULT, judge
from meantime.ports.session import Turned

from .profiles import Profile, failure_in
from .turn_updates import TurnUpdates

STOPS = {
    "max_tokens": Failed("The model's answer was cut: it has no more tokens.", "max_tokens"),
    "max_turn_requests": Failed(
        "The agent has asked its model too often in one turn.", "max_turns", terminate_reason="MAX_TURNS"
    ),
    "refusal": Failed("The model refuses to go on.", "refusal"),
}


class AgentError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def __str__(self) -> str:
        """With what only its data says: many a message is no more than "Internal error"."""
        said, detail = super().__str__(), self.data
        if known := mapping(detail):
            detail = next((known[name] for name in ("details", "message", "error") if known.get(name)), None)
        if detail and not isinstance(detail, str):
            detail = msgspec.json.encode(detail).decode()
        return f"{said}: {detail}" if detail and detail not in said else said


def model_failed(text: str, code: int = 0) -> Turned:
    """The model's provider, or the agent, could not."""
    advice = judge(text, code)
    return failed(Failed(text, "rate_limited" if advice.limited else "model_error"), advice)


def answered_with_error(profile: Profile, problem: AgentError) -> Turned:
    if profile.aborted and re.search(profile.aborted, str(problem)):
        return failed(Failed(f"The agent broke off by itself: {problem}", "agent_error"), FAULT)
    return model_failed(str(problem), problem.code)


def ended(profile: Profile, turn: TurnUpdates, answer: dict[str, Any]) -> Turned:
    """The agent says that its turn is over."""
    said = turn.unended()
    problem = failure_in(profile, said)
    if not problem and profile.failed_meta and profile.failed_meta in str(answer.get("_meta")):
        problem = said or "The agent reports an error, and does not say which."
    if problem:
        turn.drop_message()
        return model_failed(problem)
    turn.end_message()
    reason = str(answer.get("stopReason") or "")
    if reason in STOPS:
        return Turned(error=STOPS[reason])
    if turn.asking.refused and (not said.strip() or reason == "cancelled"):
        error = Failed(f"It ended its turn, because {turn.asking.refused} was not allowed.", "not_allowed")
        return Turned(error=error)
    if reason == "cancelled":
        return Turned(error=Failed("The agent says that its turn was cancelled; not by us.", "agent_error"))
    return Turned(text=turn.text)


def tokens(answer: dict[str, Any]) -> int:
    """As far as the agent counts them: of the whole turn, or of its last request only."""
    usage = mapping(answer.get("usage"))
    if not usage:  # gemini
        count = mapping(answer, "_meta", "quota", "token_count")
        return int(count.get("input_tokens") or 0) + int(count.get("output_tokens") or 0)
    return int(usage.get("totalTokens") or 0)
