"""The cli plugin: `runCommand`, inline or in the background, as a real task of the shell runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meantime.kernel.commandline import split_background
from meantime.kernel.errors import InvalidInput, TaskFailed
from meantime.kernel.model import Completed, Failed, Json, Outcome, Spill
from meantime.kernel.payloads import preview
from meantime.kernel.work import Orderable
from meantime.runners.shell.work import Shell

from .capable import RunsInBackground
from .hooks import Executors

TOOL = "runCommand"
_KNOWN = {"command", "cwd", "background", "timeout_seconds"}


class CLIPlugin(RunsInBackground):
    """{"command": …, "cwd"?, "background"?, "timeout_seconds"?} gives {"returncode", "output"}, whatever
    the exit code. A trailing `&` is the same as "background": true."""

    thresholds: Mapping[str, float | None] = {TOOL: 10.0}

    @property
    def name(self) -> str:
        return "cli"

    def get_executors(self) -> Executors:
        return {TOOL: self._run}

    def _run(self, arguments: dict[str, Any]) -> Any:
        """Plainly, for as long as it takes: for callers that know nothing of the background."""
        timeout = self.timeout_of(TOOL, arguments)
        timeout = -1 if timeout is None else timeout
        try:
            answer = self.workshop.thread.call(self.work(TOOL, arguments), timeout=timeout)
        except TaskFailed as problem:
            failed = problem.task.outcome
            shown = self.answer_to_failure(TOOL, failed) if isinstance(failed, Failed) else None
            if shown is None:
                raise
            return shown
        return self.present(TOOL, Completed(answer.result))

    def work(self, tool_name: str, arguments: dict[str, Any]) -> Orderable:
        command, _ = split_background(_command(arguments))
        return Shell(command, cwd=arguments.get("cwd"), merge=True)  # as a terminal would show it

    def timeout_of(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        return arguments.get("timeout_seconds")

    def asks_for_background(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        asked = arguments.get("background", False)
        if not isinstance(asked, bool):
            raise InvalidInput(f'"background" is true or false, not {asked!r}.')
        return asked or split_background(_command(arguments))[1]

    def present(self, tool_name: str, outcome: Outcome) -> Any:
        if isinstance(outcome, Completed):
            return {"returncode": 0, "output": _output(outcome.result, outcome.spill)}
        shown = self.answer_to_failure(tool_name, outcome) if isinstance(outcome, Failed) else None
        return outcome.partial if shown is None else shown

    def answer_to_failure(self, tool_name: str, failed: Failed) -> Any:
        code = failed.exit_code if failed.signal is None else -failed.signal
        if code is None:
            return None
        return {"returncode": code, "output": _output(failed.partial, failed.spill)}

    def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        command = arguments.get("command", "")
        if not isinstance(command, str):
            return None
        if "npm install" in command or "pip install" in command:
            return 30.0
        if "make" in command or "build" in command:
            return 60.0
        return None


def _output(text: Json, spill: Spill | None) -> Json:
    """What there is of it here: the beginning and the end, where the whole lies in a file."""
    if text is None:
        return "" if spill is None else preview(spill)
    return text


def _command(arguments: dict[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or not command.strip():
        raise InvalidInput(f'{TOOL} needs a "command" that is not empty.')
    unknown = sorted(map(str, set(arguments) - _KNOWN))
    if unknown:
        raise InvalidInput(
            f"{TOOL} does not know {', '.join(unknown)}.", hint=f"It knows {', '.join(sorted(_KNOWN))}."
        )
    return command
