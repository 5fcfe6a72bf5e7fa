"""OpenCode: `opencode run --format json`."""

from __future__ import annotations

import json
from typing import Any

from meantime.integrations.agent_host.json_values import mapping, number, part, text_in

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest


def arguments(ask: TurnRequest) -> list[str]:
    said = ["run", "--format", "json"]
    said += ["-m", ask.settings.model] if ask.settings.model else []
    said += ["--agent", ask.settings.agent] if ask.settings.agent else []
    if ask.resumes:
        said += ["-s", ask.session]
    elif ask.source:
        said += ["-s", ask.source, "--fork"]
    return said + (["--auto"] if ask.free else [])


def environment(ask: TurnRequest) -> dict[str, str]:
    """Settings without a flag go into its configuration, on top of the project's."""
    settings = ask.settings
    name = "OPENCODE_CONFIG_CONTENT"
    config: dict[str, Any] = json.loads(settings.env.get(name) or "{}")
    tools = () if ask.last else settings.tools
    if tools is not None:
        config["tools"] = {"*": False, **dict.fromkeys(tools, True)}
    rules = {tool: "allow" for tool in settings.allow if tool != "*"} | dict.fromkeys(settings.deny, "deny")
    if rules:
        config["permission"] = {**mapping(config, "permission"), **rules}
    return {name: json.dumps(config)} if config else {}


class OpenCodeReader(Reader):
    def read(self, event: Event) -> None:
        kind, told = event.get("type"), part(event, "part")
        self.session = text_in(event.get("sessionID")) or self.session
        if kind == "step_start":
            self.done = False
            self.sink.phase("thinking")
        elif kind == "text":
            self.say(text_in(part(told, "text")))
        elif kind == "reasoning":
            self.think(text_in(part(told, "text")))
        elif kind == "tool_use":
            self._tool(part(told, "state"), text_in(part(told, "callID")), text_in(part(told, "tool")))
        elif kind == "step_finish":
            self._count(told)
            self.done = part(told, "reason") != "tool-calls"
        elif kind == "error":
            data = part(event, "error", "data")
            why = text_in(part(data, "message")) or text_in(part(event, "error", "name"))
            self.fail(why, number(part(data, "statusCode")))

    def _tool(self, state: Event, id: str, tool: str) -> None:
        """It is told when it is over: the call and its result at once."""
        self.call(id, tool, part(state, "input"))
        failed = part(state, "status") == "error"
        self.result(id, part(state, "error" if failed else "output"), failed=failed)

    def _count(self, step: Event) -> None:
        tokens, cost = part(step, "tokens"), part(step, "cost")
        counts = [number(part(tokens, name)) for name in ("input", "output", "reasoning")]
        counts += [number(part(tokens, "cache", name)) for name in ("read", "write")]
        self.sink.spent(turns=1, tokens=sum(counts), cost=cost if isinstance(cost, int | float) else 0.0)


ADAPTER = CliAdapter(
    "opencode", arguments, OpenCodeReader, picks_tools=True, allows=True, denies=True,
    gone="session not found", environment=environment,
)  # fmt: skip
