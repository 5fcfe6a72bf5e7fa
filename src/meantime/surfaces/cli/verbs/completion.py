"""`meantime completion`: the script for a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from meantime.surfaces.cli.verb_table import COMPLETE
from meantime.surfaces.terminal.errors import USAGE, CliError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def command(context: click.Context, shell: str | None) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  eval "$(meantime completion bash)"                      in ~/.bashrc
    zsh:   eval "$(meantime completion zsh)"                       in ~/.zshrc
    fish:  meantime completion fish > ~/.config/fish/completions/meantime.fish
    """
    if shell is None:
        raise CliError("For which shell?", f"Name one of: {', '.join(SHELLS)}.", USAGE)
    kind = get_completion_class(shell)
    assert kind is not None  # click knows these three
    made = kind(context.find_root().command, {}, "meantime", COMPLETE)
    click.echo(ShellComplete.source(made))  # the class's own would first look for the shell's version
