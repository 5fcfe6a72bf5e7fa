"""RunsInBackground: the whole protocol for any tool plugin, on Meantime's runtime."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace

from meantime.dialects.jaato.jaato_tasks import ESTIMATE
from meantime.kernel.errors import Ambiguous, InvalidInput, MeantimeError, NotFound, TaskFailed
from meantime.kernel.estimates import alike
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.model import Completed, Failed, Json, Task
from meantime.kernel.notices import LEFT_RUNNING
from meantime.kernel.plain_text import cut
from meantime.kernel.timeouts import check_age
from meantime.kernel.work import Call, Orderable
from meantime.ports.runner import Context

from .plugin_hooks import Hooks
from .protocol import TaskHandle, TaskResult, TaskStatus
from .registry_state import HISTORY
from .task_handles import STATUS, handle_of, result_of

LOG = logging.getLogger("meantime.plugins")
TITLE = 200  # characters


class RunsInBackground(Hooks):
    """Mix it into a plugin that has a `name` and `get_executors()`, and add the plugin to a registry.

    All state is in the ledger: tasks survive this object, and after a restart they still answer.
    """

    # -- the protocol

    def estimate_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        learned = self.workshop.estimate(tool_name, alike(check_arguments(arguments)))
        return self.guess_duration(tool_name, arguments) if learned is None else learned

    def start_background(
        self, tool_name: str, arguments: dict[str, Any], timeout_seconds: float | None = None
    ) -> TaskHandle:
        return self.start_task(tool_name, arguments, timeout_seconds)

    def get_status(self, task_id: str) -> TaskStatus:
        return STATUS[self._find(task_id).status]

    def get_result(self, task_id: str, wait: bool = False) -> TaskResult:
        task = self._find(task_id)
        if wait and not task.ended:
            task = self.workshop.thread.wait(task_id)[0]
        outcome = task.outcome
        if outcome is None:
            return result_of(task, None)
        if isinstance(outcome, Completed):
            outcome = replace(outcome, result=self.workshop.thread.result(task_id), spill=None)
        elif outcome.spill is not None:
            outcome = replace(outcome, partial=self.workshop.thread.output(task_id).value)
        return result_of(task, self.background_result(task.meta["tool"], outcome))

    def cancel(self, task_id: str) -> bool:
        """Waits for the ending: the grace and the deadline of the runtime are the longest it takes."""
        task = self._find(task_id)
        if not task.ended:
            task = self.workshop.thread.cancel(task_id, wait=True).task
        return not getattr(task.outcome, "abandoned", False)

    def list_tasks(self) -> list[TaskHandle]:
        return [handle_of(task) for task in self.workshop.active(self.name)]

    def cleanup_completed(self, max_age_seconds: float = 3600) -> int:
        """They are hidden here and in listings; their history stays in the ledger, for people."""
        age, thread = check_age(max_age_seconds), self.workshop.thread
        own: list[str] = []
        offset = 0
        while page := thread.list(ENDED, history=True, limit=HISTORY, offset=offset):
            own += [task.id for task in page if task.meta.get("plugin") == self.name and not task.hidden]
            offset += len(page)
        return thread.clear(*own, older_than=age) if own else 0

    def register_running_task(
        self, future: Future[Any], tool_name: str, arguments: dict[str, Any]
    ) -> TaskHandle:
        return self.adopt_task(future, tool_name, arguments)

    # -- the same with all that our own executor knows

    def call_inline(self, tool_name: str, work: Orderable[Any], timeout_seconds: float | None) -> Any:
        """For callers that know nothing of the background. Without a timeout, for as long as it takes."""
        timeout = -1 if timeout_seconds is None else timeout_seconds
        try:
            answer = self.workshop.thread.call(work, timeout=timeout)
        except TaskFailed as problem:
            failed = problem.task.outcome
            shown = self.answer_to_failure(tool_name, failed) if isinstance(failed, Failed) else None
            if shown is None:
                raise
            return shown
        left = {LEFT_RUNNING: list(answer.left_running)} if answer.left_running else {}
        return self.background_result(tool_name, Completed(answer.result, emitted_vars=left))

    def start_task(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        timeout_seconds: float | None = None,
        meta: dict[str, Json] | None = None,
    ) -> TaskHandle:
        self._check_capable(tool_name)
        work = self.background_work(tool_name, check_arguments(arguments))
        if work is None:
            work = Call(self.get_executors()[tool_name], arguments)
        if timeout_seconds is None:
            timeout_seconds = self.timeout_of(tool_name, arguments)
        options = self.background_options(tool_name, arguments, timeout_seconds, meta or {})
        try:
            with self.workshop.place() as id:
                task = self.workshop.thread.start(work, id=id, **options).task
        except MeantimeError as problem:
            raise _not_started(problem) from problem
        return handle_of(task)

    def adopt_task(
        self,
        future: Future[Any],
        tool_name: str,
        arguments: dict[str, Any],
        *,
        id: str | None = None,
        running_for: float = 0.0,
        meta: dict[str, Json] | None = None,
        linked: Callable[[Context], object] | None = None,
    ) -> TaskHandle:
        self._check_capable(tool_name)
        check_arguments(arguments)
        options = self.background_options(tool_name, arguments, None, meta or {}, running_for)
        try:
            with self.workshop.place(id) as id:
                task = self.workshop.thread.adopt(
                    future,
                    name=f"{self.name}:{tool_name}",
                    arguments=arguments,
                    running_for=running_for,
                    linked=linked,
                    id=id,
                    **options,
                ).task
        except MeantimeError as problem:
            raise _not_started(problem) from problem
        return handle_of(task)

    def background_options(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        timeout: float | None,
        meta: dict[str, Json],
        waited: float = 0.0,
    ) -> dict[str, Any]:
        """How a call of the tool is recorded. The default timeout is time in the background: what
        somebody waited before does not count."""
        if timeout is None:
            timeout = self.workshop.config.default_timeout_seconds
            timeout = timeout + waited if timeout > 0 else timeout
        own: dict[str, Json] = {"plugin": self.name, "tool": tool_name, "like": alike(arguments)}
        own[ESTIMATE] = self._estimate(tool_name, arguments)
        description = cut(self.background_title(tool_name, arguments), TITLE)
        return {"timeout": timeout, "description": description, "meta": {**meta, **own}}

    # -- inside

    def _estimate(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        """It is only a hint: a plugin's mistake in it must not keep the tool from running."""
        try:
            seconds = self.estimate_duration(tool_name, arguments)
            return None if seconds is None or not math.isfinite(seconds) else float(seconds)
        except MeantimeError:
            return None  # such as Closed: whoever starts the tool is told
        except Exception:
            LOG.exception("The plugin %s cannot estimate how long %s takes.", self.name, tool_name)
            return None

    def _check_capable(self, tool_name: str) -> None:
        if not self.supports_background(tool_name):
            raise ValueError(
                f"Tool '{tool_name}' in plugin '{self.name}' does not support background execution"
            )

    def _find(self, task_id: str) -> Task:
        """By its whole id, in this plugin only, and only as long as it is kept."""
        thread = self.workshop.thread
        try:
            task = thread.get(task_id)
        except (NotFound, InvalidInput, Ambiguous):
            raise KeyError(f"Task {task_id!r} not found") from None
        kept = self.workshop.config.completed_task_retention_seconds
        known = task.id == task_id and task.meta.get("plugin") == self.name and not task.hidden
        if not known or (task.ended and thread.clear(task_id, older_than=kept)):
            raise KeyError(f"Task {task_id!r} not found")
        return task


def check_arguments(arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, dict):
        raise InvalidInput(f"A tool's arguments are a dict, not {type(arguments).__name__}.")
    return arguments  # pyright: ignore[reportUnknownVariableType]  its keys are the tool's own business


def _not_started(problem: MeantimeError) -> Exception:
    """In the protocol's words; a wrong timeout is a ValueError there, too."""
    return problem if isinstance(problem, ValueError) else RuntimeError(str(problem))
