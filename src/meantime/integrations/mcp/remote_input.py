"""The input that a task of the server's asks for, as questions of our task. By the extension the state of the
task has what is asked; by 2025-11-25 the server asks its client itself, which is not followed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from meantime.execution.elicited_answers import elicitations, question_id, question_of, result_of
from meantime.kernel.errors import MeantimeError
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Context, Stopped


class RemoteInput:
    """`stir` is called when there is an answer."""

    def __init__(self, context: Context, stir: Callable[[], None]) -> None:
        self._context = context
        self._stir = stir
        self.asking = BackgroundTasks()  # closed, they leave their questions to the next owner
        self._known: dict[str, str] = {}  # the ids of our questions, by the server's names
        self._open: set[str] = set()
        self.answers: dict[str, Any] = {}  # that the server does not have yet

    def take(self, state: Mapping[str, Any]) -> bool:
        """Asks what is new in the state of a task. False: a person cannot give it."""
        wanted = _wanted(state)
        if wanted is None:
            return False
        self._withdraw_all_but(wanted)
        for name, params in wanted.items():
            if name not in self._known:
                self._known[name] = question_id(name)
                self._open.add(name)
                self.asking.start(self._ask(name, params))
        return True

    def sent(self) -> None:
        self.answers = {}

    async def _ask(self, name: str, params: dict[str, Any]) -> None:
        try:
            reply = await self._context.ask(question_of(self._known[name], params))
        except (MeantimeError, Stopped):
            return  # the task is about to end
        if name in self._open:
            self._open.discard(name)
            self.answers[name] = result_of(params, reply)
            self._stir()

    def _withdraw_all_but(self, wanted: Mapping[str, Any]) -> None:
        """The server does not ask for the others any more."""
        for name in self._open - set(wanted):
            self._open.discard(name)
            self._context.withdraw(self._known[name])


def _wanted(state: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """The params of what is asked, by name; None where it is not for a person, or is not said."""
    if state.get("status") != "input_required":
        return {}
    return elicitations(state.get("inputRequests")) or None
