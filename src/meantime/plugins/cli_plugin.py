"""The cli plugin: `runCommand`, inline or in the background, as a real task of the shell runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meantime.dialects.jaato import cli_command
from meantime.dialects.jaato.cli_command import PLUGIN, TOOL, command_of
from meantime.dialects.jaato.shell_background import split_background
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Failed, Outcome
from meantime.kernel.work import Orderable
from meantime.runners.shell.shell_work import Shell

from .background_mixin import RunsInBackground
from .plugin_hooks import Executors


class CLIPlugin(RunsInBackground):
    """{"command": …, "cwd"?, "background"?, "timeout_seconds"?} gives {"returncode", "output"}, whatever
    the exit code, and "left_running" where it left processes behind. A trailing `&` is the same as
    "background": true."""

    thresholds: Mapping[str, float | None] = {TOOL: 10.0}

    @property
    def name(self) -> str:
        return PLUGIN

    def get_executors(self) -> Executors:
        return {TOOL: self._run}

    def _run(self, arguments: dict[str, Any]) -> Any:
        """Plainly, for as long as it takes: for callers that know nothing of the background."""
        timeout = self.timeout_of(TOOL, arguments)
        return self.call_inline(TOOL, self.background_work(TOOL, arguments), timeout)

    def background_work(self, tool_name: str, arguments: dict[str, Any]) -> Orderable[Any]:
        command, _ = split_background(command_of(arguments))
        return Shell(command, cwd=arguments.get("cwd"), merge=True)  # as a terminal would show it

    def background_title(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return " ".join(str(arguments.get("command")).split())

    def timeout_of(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        return arguments.get("timeout_seconds")

    def asks_for_background(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        asked = arguments.get("background", False)
        if not isinstance(asked, bool):
            raise InvalidInput(f'"background" is true or false, not {asked!r}.')
        return asked or split_background(command_of(arguments))[1]

    def background_result(self, tool_name: str, outcome: Outcome) -> Any:
        return cli_command.shown(outcome)

    def answer_to_failure(self, tool_name: str, failed: Failed) -> Any:
        return cli_command.exit_of(failed)

    def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        return cli_command.guess(arguments.get("command"))
