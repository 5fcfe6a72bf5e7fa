"""A call that the runtime performs, through one of its runners."""

from __future__ import annotations

from typing import Any

from meantime.blocking import begin
from meantime.kernel.errors import TaskFailed
from meantime.kernel.model import Completed, Failed, Json
from meantime.kernel.notices import LEFT_RUNNING
from meantime.kernel.work import Orderable
from meantime.ports.tasks import Answer

from .background_mixin import RunsInBackground
from .protocol import TaskHandle
from .registry import Tool
from .task_handles import handle_of
from .waited_call import Calling


class RuntimeCall(Calling):
    """The work that a plugin gives: a command becomes a real task of the shell runner."""

    def __init__(
        self,
        tool: Tool,
        ours: RunsInBackground,
        arguments: dict[str, Any],
        meta: dict[str, Json],
        work: Orderable[Any],
        threshold: float | None,
    ) -> None:
        super().__init__(tool, arguments, meta)
        self._ours = ours
        self._work = work
        timeout = ours.timeout_of(tool.name, arguments)
        if timeout is None and threshold is None:
            timeout = -1.0  # somebody waits for it, for as long as it takes
        self._options = ours.background_options(tool.name, arguments, timeout, meta, threshold or 0.0)

    def begin(self) -> None:
        call = self._ours.workshop.thread.call
        self.future = begin(call, self._work, id=self.id, **self._options)
        self.future.add_done_callback(self.wake)

    def hand_off(self) -> TaskHandle:
        workshop = self._ours.workshop
        with workshop.place(self.id):
            task = workshop.thread.promote(self.id).task
        return handle_of(task)

    def result(self) -> Any:
        try:
            answer: Answer = self.future.result()
        except TaskFailed as problem:
            ours, failed = self._ours, problem.task.outcome
            shown = ours.answer_to_failure(self.tool.name, failed) if isinstance(failed, Failed) else None
            if shown is None:
                raise
            return shown
        if answer.task is not None:
            self.promoted = handle_of(answer.task)
            return None
        left = {LEFT_RUNNING: list(answer.left_running)} if answer.left_running else {}
        return self._ours.background_result(self.tool.name, Completed(answer.result, emitted_vars=left))

    def give_up(self) -> None:
        self.future.cancel()
