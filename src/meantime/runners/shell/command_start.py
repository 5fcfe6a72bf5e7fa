"""Getting a command begun: its order goes to a shim, whatever happens to those who carry it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from meantime.kernel.model import Failed, Task
from meantime.ports.runner import Assignment

from . import exit_report, shim_order
from .launcher import Launcher
from .shim_watch import ShimWatch

LAUNCHES = 3
STUCK = 5.0  # seconds after which an order that nobody has taken is given to another zygote


def can_run(task: Task) -> bool:
    """After a restart: values of environment variables are not stored, so they cannot be given again."""
    return task.work.faithful


class CommandStart:
    def __init__(self, launcher: Launcher, settings: dict[str, float | int]) -> None:
        self._launcher = launcher
        self._settings = settings

    async def attend(self, watch: ShimWatch, assignment: Assignment, *, same_boot: bool, lasts: bool) -> None:
        """Begins the command, or finds out what has become of it."""
        try:
            state = watch.look()
            if assignment.again and watch.is_copy():
                watch.spare()
            elif state is not None:
                watch.take_up(state)
            elif assignment.again and not same_boot:
                watch.lose(exit_report.REBOOTED)
            elif assignment.again and not can_run(assignment.task):
                self._refuse(watch, lambda: watch.lose(exit_report.UNTOLD))
            else:
                watch.outlive(lasts and not assignment.foreground)
                await self._launch(watch, shim_order.make(assignment, watch.base, self._settings))
        except shim_order.Unstartable as problem:
            watch.fail(problem.failed)
        except Exception as problem:  # whatever it is, nobody may wait for ever for what was not started
            watch.fail(Failed(f"The command could not be started: {problem}.", "not_started"))

    async def _launch(self, watch: ShimWatch, wanted: dict[str, object]) -> None:
        for _ in range(LAUNCHES):
            line = await self._launcher.launch(wanted)
            waits = {line.gone, watch.begun, watch.over}
            while not (await asyncio.wait(waits, timeout=STUCK, return_when=asyncio.FIRST_COMPLETED))[0]:
                if watch.look() is None:  # what was ordered before us hangs, perhaps on a disk that is gone
                    self._launcher.go_round(line)
                    break
            if watch.begun.done():
                return
            if (state := watch.look()) is not None:  # its shim was killed before it said so
                watch.take_up(state)
                return
        text = "It was not started: whoever was to start it was killed, or hung, again and again."
        self._refuse(watch, lambda: watch.fail(Failed(text, "not_started")))

    def _refuse(self, watch: ShimWatch, end: Callable[[], None]) -> None:
        """An order may still be on its way: it is not carried out any more, or it was, and we follow it."""
        if watch.forbid():
            end()
        elif (state := watch.look()) is not None:
            watch.take_up(state)
