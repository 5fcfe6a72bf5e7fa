"""An agent asks for a permission: its own options are the choices, and the answer is one of them."""

from __future__ import annotations

import asyncio
from typing import Any

from meantime.integrations.json_values import mappings
from meantime.kernel.questions import ONCE, TASK, Choice, Question, Reply
from meantime.ports.session import Hearer

CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
# An answer for this task is ours to remember: to the agent it is one for this once. What it calls "always"
# may be written into its configuration, and hold for everything its user ever does.
LABELS = {"allow_always": "Allow for this task", "reject_always": "Reject for this task"}


class PermissionRequests:
    """The questions of one turn."""

    def __init__(self, session: str, hearer: Hearer, *, refuses: bool) -> None:
        self._session = session
        self._hearer = hearer
        self._refuses = refuses  # it is to hand in what it has
        self._waiting: set[asyncio.Future[Reply]] = set()
        self._count = 0
        self._over = False
        self.refused = ""  # the tool that was refused last

    async def ask(self, call: str, tool: str, title: str, arguments: Any, options: Any) -> dict[str, Any]:
        offered = _offered(options)
        if self._over or not offered:
            return CANCELLED
        if self._refuses:
            return self._answer(offered, tool, allows=False)
        self._count += 1
        what = f"{tool}: {title}" if title and title != tool else tool
        question = Question(
            id=f"{self._session}/{call}/{self._count}",
            text=f"May it use {what}?",
            kind="permission",
            choices=tuple(_choice(kind, option) for kind, option in offered.items()),
            subject=tool,
            arguments=arguments,
        )
        asking = asyncio.ensure_future(self._hearer.ask(question))
        self._waiting.add(asking)
        try:
            await asyncio.wait({asking})
        finally:
            self._waiting.discard(asking)
            asking.cancel()
        if asking.cancelled() or self._over:
            return CANCELLED
        return self._answer(offered, tool, allows=bool(asking.result().allows))

    def _answer(self, offered: dict[str, dict[str, Any]], tool: str, *, allows: bool) -> dict[str, Any]:
        self.refused = "" if allows else tool
        verb = "allow" if allows else "reject"
        option = offered.get(f"{verb}_once") or offered.get(f"{verb}_always")
        if option is None:
            return CANCELLED
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    def end(self) -> None:
        """The turn is over, or is to be: whoever was asked need not answer any more."""
        self._over = True
        for asking in self._waiting:
            asking.cancel()


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
