"""F18: permission is decided before anything runs, and kept with the task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meantime.kernel.model import Json
from meantime.kernel.plain_text import escape_surrogates

MAX_TEXT = 1_000  # characters of a reason


@dataclass(frozen=True)
class Decision:
    """The answer of a permission check; it is kept with the task, if the call becomes one."""

    allowed: bool
    reason: str = ""
    by: str = ""


Permission = Callable[[str, dict[str, Any]], "bool | Decision"]


def check_permission(permission: Permission | None, name: str, arguments: dict[str, Any]) -> Decision:
    """A check that fails, or gives no answer, denies the permission."""
    if permission is None:
        return Decision(True)
    try:
        answer: Any = permission(name, arguments)
    except Exception as problem:
        return Decision(False, f"the check failed with {type(problem).__name__}: {problem}")
    if isinstance(answer, Decision):
        return answer
    if isinstance(answer, bool):
        return Decision(answer)
    return Decision(False, f"the check answered {answer!r} instead of True, False or a Decision")


def kept(decision: Decision) -> dict[str, Json]:
    """As it is kept with a task: short enough, and fit to be stored, whatever somebody typed."""

    def text(words: object) -> str:
        return escape_surrogates(str(words))[:MAX_TEXT]

    return {"allowed": decision.allowed, "reason": text(decision.reason), "by": text(decision.by)}


def denied(name: str, decision: Decision) -> str:
    why = f": {decision.reason}" if decision.reason else ""
    return f"Permission denied for tool '{name}'{why}"
