"""F18: permission is decided before anything runs, and kept with the task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Decision:
    """The answer of a permission check; it is kept with the task, if the call becomes one."""

    allowed: bool
    reason: str = ""
    by: str = ""


Permission = Callable[[str, dict[str, Any]], "bool | Decision"]


def ask(permission: Permission | None, name: str, arguments: dict[str, Any]) -> Decision:
    """A check that fails, or gives no answer, is no permission."""
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


def denied(name: str, decision: Decision) -> str:
    why = f": {decision.reason}" if decision.reason else ""
    return f"Permission denied for tool '{name}'{why}"
