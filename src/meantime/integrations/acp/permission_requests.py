"""An agent asks for a permission: its own options are the choices, and the answer is one of them."""

from __future__ import annotations

from typing import Any

from meantime.integrations.agent_host.json_values import mappings
from meantime.integrations.agent_host.turn_questions import TurnQuestions
from meantime.kernel.questions import ONCE, TASK, Choice, permission
from meantime.ports.session import Hearer

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
# An answer for this task is ours to remember: to the agent it is one for this once. What it calls "always"
# may be written into its configuration, and hold for everything its user ever does.
LABELS = {"allow_always": "Allow for this task", "reject_always": "Reject for this task"}


class PermissionRequests:
    """The questions of one turn."""

    def __init__(self, session: str, hearer: Hearer, *, refuses: bool) -> None:
        self._session = session
        self._questions = TurnQuestions(hearer)
        self._refuses = refuses  # it is to hand in what it has
        self._count = 0
        self.refused = ""  # the tool that was refused last

    async def ask(self, call: str, tool: str, title: str, arguments: Any, options: Any) -> dict[str, Any]:
        offered = _offered(options)
        if self._questions.over or not offered:
            return CANCELLED
        if self._refuses:
            return self._answer(offered, tool, allows=False)
        self._count += 1
        question = permission(
            f"{self._session}/{call}/{self._count}",
            tool,
            detail="" if title == tool else title,
            arguments=arguments,
            choices=tuple(_choice(kind, option) for kind, option in offered.items()),
        )
        reply = await self._questions.ask(question)
        return CANCELLED if reply is None else self._answer(offered, tool, allows=bool(reply.allows))

    def _answer(self, offered: dict[str, dict[str, Any]], tool: str, *, allows: bool) -> dict[str, Any]:
        self.refused = "" if allows else tool
        verb = "allow" if allows else "reject"
        option = offered.get(f"{verb}_once") or offered.get(f"{verb}_always")
        if option is None:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    def end(self) -> None:
        self._questions.end()


def _offered(options: Any) -> dict[str, dict[str, Any]]:
    """One of each kind: what makes two kinds of "always" different is within the agent."""
    found: dict[str, dict[str, Any]] = {}
    for option in mappings(options):
        if option.get("optionId"):
            found.setdefault(str(option.get("kind")), option)
    return found


def _choice(kind: str, option: dict[str, Any]) -> Choice:
    allows = True if kind.startswith("allow") else False if kind.startswith("reject") else None
    label = LABELS.get(kind) or str(option.get("name") or "")
    return Choice(str(option["optionId"]), label, allows, TASK if kind.endswith("_always") else ONCE)
