"""A plugin and a tool of it, as work. Where there are no plugins, commands are the tool of `cli`, functions
those of `tools`, agents those of `agents`, and the tools of an MCP server those of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from meantime.dialects.jaato.shell_background import split_background
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.model import Json
from meantime.kernel.plain_text import cut
from meantime.ports import asks
from meantime.ports.asks import Starting
from meantime.ports.dialect import Offer

from . import cli_command, jaato_arguments, jaato_texts
from .background_config import NO_LIMIT, BackgroundConfig
from .jaato_tasks import AGENTS, FUNCTIONS, full_name, named


class Capable(NamedTuple):
    """The work that can be started here."""

    commands: bool
    functions: Sequence[str]  # and tools of MCP servers, as far as they are known
    agents: Sequence[str] | None  # empty is any name, None is none

    def now(self, functions: Sequence[str], agents: Sequence[str]) -> list[tuple[str, str]]:
        """Plugins and their tools; there may be more by now than when this was offered."""
        cli = [(cli_command.PLUGIN, cli_command.TOOL)] if self.commands else []
        by_name = [(AGENTS, name) for name in agents] if self.agents is not None else []
        return [*cli, *(named(name) for name in functions), *by_name]

    @property
    def plugins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(plugin for plugin, _ in self.now(self.functions, ())), *self.own)))

    @property
    def own(self) -> tuple[str, ...]:
        """Plugins whose tools are all known here; the tools of the others are known to the process that
        starts them."""
        cli = (cli_command.PLUGIN,) if self.commands else ()
        return cli if self.agents is None else (*cli, AGENTS)


class StartNamed(asks.StartTool, frozen=True, kw_only=True):
    """Whether there is such a tool is known where it is started; then this is for the text that says so."""

    capable: tuple[str, ...] = ()


def capable_of(offer: Offer) -> Capable | None:
    found = Capable(offer.commands, offer.tools, offer.agents)
    return found if found.plugins else None


def start(capable: Capable, config: BackgroundConfig, given: jaato_arguments.Start) -> Starting:
    plugin, tool, arguments = given.plugin_name, given.tool_name, given.arguments
    if plugin == FUNCTIONS:
        plugin, tool = named(tool)
    timeout = config.default_timeout_seconds if given.timeout_seconds is None else given.timeout_seconds
    meta: dict[str, Json] = {"plugin": plugin, "tool": tool}
    if plugin == cli_command.PLUGIN and capable.commands and tool == cli_command.TOOL:
        if given.timeout_seconds is None:  # the command may name its own
            timeout = arguments.get("timeout_seconds", timeout)
        return _command(arguments, timeout=timeout, meta=meta)
    if plugin == AGENTS and capable.agents is not None and tool in (capable.agents or (tool,)):
        return _agent(tool, arguments, timeout, meta)
    if plugin in (*capable.own, "") or not tool:
        raise Refused(jaato_texts.not_capable(plugin[:128], tool[:128], capable.plugins), code="not_capable")
    return StartNamed(
        name=full_name(plugin, tool), arguments=arguments, timeout=timeout, meta=meta, capable=capable.plugins
    )


def run_command(config: BackgroundConfig, given: jaato_arguments.Command) -> asks.StartCommand:
    """`runCommand` itself. It is waited for until the threshold; the default timeout begins after that."""
    arguments: dict[str, Any] = {"command": given.command, "cwd": given.cwd}
    meta: dict[str, Json] = {"plugin": cli_command.PLUGIN, "tool": cli_command.TOOL}
    timeout, default = given.timeout_seconds, config.default_timeout_seconds
    if not isinstance(given, jaato_arguments.HandedOffCommand):
        timeout = NO_LIMIT if timeout is None else timeout
        return _command(arguments, timeout=timeout, meta=meta, background=False)
    threshold = config.background_threshold_seconds
    if given.background or split_background(given.command)[1] or threshold == 0:
        return _command(arguments, timeout=default if timeout is None else timeout, meta=meta)
    if timeout is None:
        timeout = default if default == NO_LIMIT else default + threshold
    return _command(arguments, timeout=timeout, meta=meta, background=False, threshold=threshold)


def _command(arguments: dict[str, Any], **options: Any) -> asks.StartCommand:
    command, _ = split_background(cli_command.command_of(arguments))
    cwd = arguments.get("cwd")
    if cwd is not None and not isinstance(cwd, str):
        raise InvalidInput(f'"cwd" is the path of a folder, not {type(cwd).__name__}.')
    description = cut(" ".join(command.split()), 200)
    return asks.StartCommand(command=command, cwd=cwd, description=description, **options)


def _agent(name: str, arguments: dict[str, Any], timeout: float, meta: dict[str, Json]) -> asks.StartAgent:
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise InvalidInput('An agent needs a "prompt": a text that is not empty.')
    input = {key: value for key, value in arguments.items() if key != "prompt"}
    if taken := {"name", "self"} & set(input):
        raise InvalidInput(f"An agent takes no argument {', '.join(sorted(taken))}.")
    return asks.StartAgent(agent=name, prompt=prompt, input=input, timeout=timeout, meta=meta)
