"""The cli plugin: `runCommand`, inline or in the background, as a real task of the shell runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meantime.kernel.commandline import split_background
from meantime.kernel.errors import InvalidInput, TaskFailed
from meantime.kernel.model import Completed, Failed, InlineLimits, Json, Outcome
from meantime.kernel.notices import LEFT_RUNNING, left_running
from meantime.kernel.payloads import as_text, preview
from meantime.kernel.work import Orderable
from meantime.runners.shell.work import Shell

from .capable import RunsInBackground
from .hooks import Executors

TOOL = "runCommand"
MOST = InlineLimits().max_bytes  # characters of an inline answer
TAIL = 10_000  # of them, at the end
_KNOWN = {"command", "cwd", "background", "timeout_seconds"}


class CLIPlugin(RunsInBackground):
    """{"command": …, "cwd"?, "background"?, "timeout_seconds"?} gives {"returncode", "output"}, whatever
    the exit code, and "left_running" where it left processes behind. A trailing `&` is the same as
    "background": true."""

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
        left = {LEFT_RUNNING: list(answer.left_running)} if answer.left_running else {}
        return self.present(TOOL, Completed(answer.result, emitted_vars=left))

    def work(self, tool_name: str, arguments: dict[str, Any]) -> Orderable:
        command, _ = split_background(_command(arguments))
        return Shell(command, cwd=arguments.get("cwd"), merge=True)  # as a terminal would show it

    def describe(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return " ".join(str(arguments.get("command")).split())

    def timeout_of(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        return arguments.get("timeout_seconds")

    def asks_for_background(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        asked = arguments.get("background", False)
        if not isinstance(asked, bool):
            raise InvalidInput(f'"background" is true or false, not {asked!r}.')
        return asked or split_background(_command(arguments))[1]

    def present(self, tool_name: str, outcome: Outcome) -> Any:
        if isinstance(outcome, Completed):
            return _answer(0, outcome.result, outcome)
        shown = self.answer_to_failure(tool_name, outcome) if isinstance(outcome, Failed) else None
        return outcome.partial if shown is None else shown

    def answer_to_failure(self, tool_name: str, failed: Failed) -> Any:
        code = failed.exit_code if failed.signal is None else -failed.signal
        if code is None:
            return None
        return _answer(code, failed.partial, failed)

    def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        command = arguments.get("command", "")
        if not isinstance(command, str):
            return None
        if "npm install" in command or "pip install" in command:
            return 30.0
        if "make" in command or "build" in command:
            return 60.0
        return None


def _answer(code: int, text: Json, outcome: Completed | Failed) -> dict[str, Any]:
    """What a model can take: the two ends of what is longer than that."""
    spill = outcome.spill
    shown = as_text(text) if spill is None else preview(spill)
    if len(shown) > MOST:
        gap = f"\n… {len(shown) - MOST} characters left out; in the background all of it is kept …\n"
        shown = shown[: MOST - TAIL] + gap + shown[-TAIL:]
    answer: dict[str, Any] = {"returncode": code, "output": shown}
    if spill is not None:
        answer["output_file"] = spill.path
    if left := left_running(outcome):
        answer[LEFT_RUNNING] = left
    return answer


def _command(arguments: dict[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or not command.strip():
        raise InvalidInput(f'{TOOL} needs a "command": a text that is not empty.')
    unknown = sorted(map(str, set(arguments) - _KNOWN))
    if unknown:
        raise InvalidInput(
            f"{TOOL} does not know {', '.join(unknown)}.", hint=f"It knows {', '.join(sorted(_KNOWN))}."
        )
    return command
