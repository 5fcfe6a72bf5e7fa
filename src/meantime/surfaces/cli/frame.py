"""Around every verb: the lazy group, and how a run of the executable ends."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from .safe import plain, plain_lines
from .trouble import BROKEN_PIPE, FAILED, INTERRUPTED, USAGE, Trouble

COMPLETE = "_MEANTIME_COMPLETE"  # how click's completion scripts ask
Table = Mapping[str, Mapping[str, tuple[str, str]]]


def run(table: Table, arguments: Sequence[str], version: str) -> int:
    """One call of `meantime`: its exit code. Whatever happens, nobody sees a traceback."""
    _open_streams()
    try:
        code = _invoked(_group(table, version), list(arguments))
        sys.stdout.flush()
        return code
    except Trouble as trouble:
        return _told(trouble.what, trouble.hint, trouble.exit_code)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else _asked_for(table, arguments)
        what = " ".join(error.format_message().split())  # click lists choices below, a line for each
        return _told(what, f"See `{path} --help`.", USAGE)
    except click.ClickException as error:
        return _told(error.format_message(), "", error.exit_code)
    except (KeyboardInterrupt, EOFError, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _let_go_of_stdout()
        return _told(str(error), "", FAILED)
    except Exception as error:
        if os.environ.get("MEANTIME_DEBUG"):
            raise
        what = f"This is a fault in meantime itself: {type(error).__name__}: {error}"
        return _told(what, "MEANTIME_DEBUG=1 shows where.", FAILED)


def _asked_for(table: Table, arguments: Sequence[str]) -> str:
    """Where click does not say which verb an option was wrong for."""
    verb = next(iter(arguments), "")
    return f"meantime {verb}" if any(verb in verbs for verbs in table.values()) else "meantime"


def _invoked(group: click.Group, arguments: list[str]) -> int:
    if COMPLETE in os.environ:
        from click.shell_completion import shell_complete

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
        self._verbs = {name: where for verbs in table.values() for name, (where, _) in verbs.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = self._verbs.get(cmd_name)
        if where is None:
            return None
        module, _, attribute = where.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as missing:
            if missing.name != module:
                raise Trouble(
                    f"`{cmd_name}` needs {missing.name}, which is not installed.",
                    "pip install 'meantime[server]'",
                ) from missing
            raise Trouble(f"`{cmd_name}` is not part of this version.") from missing

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._verbs and not args[0].startswith("-"):
            self._unknown(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in self._table.items():
            with formatter.section(heading):
                formatter.write_dl([(name, line) for name, (_, line) in verbs.items()])

    def _unknown(self, name: str) -> NoReturn:
        from difflib import get_close_matches

        near = get_close_matches(name, self._verbs, n=1)
        hint = f"Did you mean `meantime {near[0]}`?" if near else "`meantime --help` lists the verbs."
        raise Trouble(f"There is no verb {click.unstyle(name)!r}.", hint, USAGE)


@click.pass_context
def _help_when_alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _told(what: str, hint: str, code: int) -> int:
    first = next((line for line in what.splitlines() if line.strip()), "It failed.")
    lines = [f"meantime: {plain(first)}", *(f"  {line}" for line in plain_lines(hint).split("\n") if line)]
    try:
        sys.stdout.flush()
    except OSError:
        _let_go_of_stdout()
    with contextlib.suppress(OSError):  # then there is nobody to tell
        click.echo("\n".join(lines), err=True)
    return code


def _open_streams() -> None:
    """A stream that was closed for us is as good as /dev/null; what a terminal cannot show is a `?`."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _let_go_of_stdout() -> None:
    """Nobody reads it any more: else the interpreter complains about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
