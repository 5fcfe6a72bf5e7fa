"""The command line as click sees it: help, completion, and what is wrong with a call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.shell_completion import CompletionItem, shell_complete

from meantime.kernel.search_query import QUALIFIERS
from meantime.surfaces.terminal.errors import USAGE, CliError

from .parameter_types import ChoiceType, Duration, FilePath, Number, TaskRef, Whole
from .verb import Parameter, Verb
from .verb_table import COMPLETE, loaded, places

if TYPE_CHECKING:
    from .verb_table import Table


def invoked(table: Table, arguments: Sequence[str], version: str) -> int:
    """One call, by click: its exit code. Errors of click become a Trouble."""
    try:
        return _invoked(_group(table, version), list(arguments))
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else _verb_in(table, arguments)
        what = " ".join(error.format_message().split())  # click lists choices below, a line for each
        hint = _dashed_qualifier(arguments, path) or f"See `{path} --help`."
        raise CliError(what, hint, USAGE) from error
    except click.ClickException as error:
        raise CliError(error.format_message(), "", error.exit_code) from error
    except click.Abort:
        raise KeyboardInterrupt from None


def _dashed_qualifier(arguments: Sequence[str], path: str) -> str:
    """A hint for `ps -status:failed`: a search may turn a qualifier round, and a dash begins an option."""
    for argument in arguments:
        name = argument[1:].partition(":")[0]
        if argument.startswith("-") and ":" in argument and name in QUALIFIERS:
            return (
                f"Write the qualifier without the dash: `{path} {argument[1:]}`. "
                f"To leave those tasks out: `{path} -- {argument}`."
            )
    return ""


def as_click(verb: Verb) -> click.Command:
    """The command of click for a verb. Its callback gives the exit code."""

    def perform(**given: Any) -> int:
        return verb.perform(given)

    return click.Command(
        verb.name,
        callback=perform,
        params=[_parameter(one) for one in verb.parameters],
        help=verb.body.__doc__,
        context_settings=verb.settings,
    )


def _parameter(one: Parameter) -> click.Parameter:
    settings: dict[str, Any] = {**one.settings, "type": _type(one.settings.get("type"))}
    if one.is_argument:
        return click.Argument([one.dest], **settings)
    return click.Option([*one.flags, one.dest], **settings)


def _type(kind: object) -> click.ParamType | None:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    match kind:
        case Whole():
            return click.IntRange(kind.least, kind.most)
        case Number():
            return click.FloatRange(kind.least, kind.most)
        case ChoiceType():
            return click.Choice(kind.words)
        case FilePath():
            return click.Path()
        case Duration() | TaskRef():
            return ClickType(kind)
        case _:
            return None


class ClickType(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A type that click has not."""

    def __init__(self, kind: Duration | TaskRef) -> None:
        self.name = kind.name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int | float):
            return float(value)
        try:
            return self._kind.read(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if not isinstance(self._kind, TaskRef):
            return []
        return [CompletionItem(id, help=words) for id, words in self._kind.candidates(incomplete)]


def _verb_in(table: Table, arguments: Sequence[str]) -> str:
    """Where click does not say which verb an option was wrong for."""
    verb = next(iter(arguments), "")
    return f"meantime {verb}" if verb in places(table) else "meantime"


def _invoked(group: click.Group, arguments: list[str]) -> int:
    if COMPLETE in os.environ:
        return shell_complete(group, {}, "meantime", COMPLETE, os.environ[COMPLETE])
    try:
        with group.make_context("meantime", arguments) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    return code if isinstance(code, int) else 0


def _group(table: Table, version: str) -> click.Group:
    def say_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(f"meantime {version}")
            context.exit()

    return LazyGroup(
        table,
        name="meantime",
        help="Runs slow work in the background: hand it off, keep talking, be told once.",
        params=[
            click.Option(
                ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=say_version,
                help="Show the version.",
            )
        ],
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        no_args_is_help=False,
        invoke_without_command=True,
        callback=_help_when_alone,
    )  # fmt: skip


class LazyGroup(click.Group):
    """Loads the one verb that is asked for. The help's lines come from the table."""

    def __init__(self, table: Table, **given: Any) -> None:
        super().__init__(**given)
        self._table = table
        self._places = places(table)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = self._places.get(cmd_name)
        if where is None:
            return None
        found = loaded(cmd_name, where)
        return as_click(found) if isinstance(found, Verb) else found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._places and not args[0].startswith("-"):
            self._unknown(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in self._table.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in verbs.items()])

    def _unknown(self, name: str) -> NoReturn:
        from difflib import get_close_matches

        near = get_close_matches(name, self._places, n=1)
        hint = f"Did you mean `meantime {near[0]}`?" if near else "`meantime --help` lists the verbs."
        raise CliError(f"There is no verb {click.unstyle(name)!r}.", hint, USAGE)


@click.pass_context
def _help_when_alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
