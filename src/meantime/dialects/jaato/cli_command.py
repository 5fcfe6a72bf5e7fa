"""Commands in seed 003's words: `runCommand` of the plugin cli."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meantime.kernel.bounds import middle_out
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Completed, Failed, Json, Outcome
from meantime.kernel.notices import LEFT_RUNNING, left_running
from meantime.kernel.payloads import as_text, preview

PLUGIN, TOOL = "cli", "runCommand"
_KNOWN = {"command", "cwd", "background", "timeout_seconds"}


def command_of(arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or not command.strip():
        raise InvalidInput(f'{TOOL} needs a "command": a text that is not empty.')
    unknown = sorted(map(str, set(arguments) - _KNOWN))
    if unknown:
        raise InvalidInput(
            f"{TOOL} does not know {', '.join(unknown)}.", hint=f"It knows {', '.join(sorted(_KNOWN))}."
        )
    return command


def guess(command: object) -> float | None:
    """Seconds that such a command may take, as the seed guesses them; None if there is no telling."""
    if not isinstance(command, str):
        return None
    if "npm install" in command or "pip install" in command:
        return 30.0
    if "make" in command or "build" in command:
        return 60.0
    return None


def shown(outcome: Outcome) -> Any:
    """The visible part of an ending: exit code and output, or what there was of that."""
    if isinstance(outcome, Completed):
        return _answer(0, outcome.result, outcome)
    found = exit_of(outcome) if isinstance(outcome, Failed) else None
    return outcome.partial if found is None else found


def exit_of(failed: Failed) -> dict[str, Any] | None:
    """An exit code is an answer; None is a failure that has none."""
    code = failed.exit_code if failed.signal is None else -failed.signal
    return None if code is None else _answer(code, failed.partial, failed)


def _answer(code: int, text: Json, outcome: Completed | Failed) -> dict[str, Any]:
    """Text of a size that a model can take: the two ends of a longer one."""
    spill = outcome.spill
    said = as_text(text) if spill is None or spill.of_message else preview(spill)
    answer: dict[str, Any] = {"returncode": code, "output": middle_out(said)}
    if spill is not None:
        answer["output_file"] = spill.path
    if left := left_running(outcome):
        answer[LEFT_RUNNING] = left
    return answer
