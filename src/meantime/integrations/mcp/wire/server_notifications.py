"""Unrequested messages of a server: progress of its calls, states of its tasks, changes of its tools."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("meantime")
Said = Callable[[dict[str, Any]], None]


class ServerNotifications:
    def __init__(self, server: str) -> None:
        self._server = server
        self._tokens = itertools.count(1)
        self._progress: dict[str, Said] = {}
        self._states: dict[str, Said] = {}  # who follows which task of the server's
        self._kept: dict[str, str] = {}  # the progress token of a task, which lasts as long as it does
        self.changes = 0  # of its tools

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        said = None
        if method == "notifications/progress":
            said = self._progress.get(str(params.get("progressToken")))
        elif method.startswith("notifications/tasks"):
            said = self._states.get(str(params.get("taskId")))
        elif method == "notifications/tools/list_changed":
            self.changes += 1
        if said is None:
            return
        try:
            said(params)
        except Exception as problem:  # what a server says must not end the connection of all
            logger.warning("A notification of %s about a call could not be used: %s", self._server, problem)

    def new_token(self, said: Said) -> str:
        """For a call, which then says how far it is under this token."""
        token = f"p{next(self._tokens)}"
        self._progress[token] = said
        return token

    def end_call(self, token: str, task: str | None) -> None:
        """It was answered, or given up. With a task, its token is accepted until the task is over."""
        if task is None:
            del self._progress[token]
        else:
            self._kept[task] = token

    def follow(self, task: str, said: Said) -> None:
        self._states[task] = said

    def unfollow(self, task: str) -> None:
        self._states.pop(task, None)
        self._progress.pop(self._kept.pop(task, ""), None)
