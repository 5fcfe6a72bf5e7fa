"""`meantime service`: the daemon as a service of systemd or launchd."""

from __future__ import annotations

import os
import pwd
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from meantime.app.service_managers import Command, ServiceManager, problem_with, service_manager
from meantime.app.service_units import NAME, Service, search_path
from meantime.daemon.daemon_autostart import answers
from meantime.daemon.home import Home
from meantime.surfaces.caller import executable
from meantime.surfaces.cli.confirmation import confirmed
from meantime.surfaces.cli.parameter_types import ChoiceType
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.install.file_change import FileChange, read
from meantime.surfaces.terminal.errors import FAILED, NOT_FOUND, USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain_lines

STATE = "/var/lib"  # systemd's folder for the state of its services
LINGER = "/var/lib/systemd/linger"


@verb("service", starts=False)
@argument("action", type=ChoiceType("install", "status", "uninstall"))
@option("--system", is_flag=True, help="A service of the system, started at boot. It needs root.")
@option("--run-as", "user", metavar="NAME", help="With --system: whom the daemon and its commands run as.")
@option("--print", "only_print", is_flag=True, help="Show the change; write nothing.")
@option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
def command(
    action: str, system: bool, user: str | None, only_print: bool, yes: bool, as_json: bool
) -> int | None:
    """Let systemd, or launchd on macOS, start the daemon, watch it, and start it again if it crashes.

    `service install` shows the file and the commands first. `service uninstall` takes all of it back.
    Running commands keep running in any case.
    """
    home = daemon().home
    manager = _manager(home, system, user, needs_user=action == "install")
    if system and user is None and (installed := manager.user_in(read(manager.path) or "")):
        manager = _manager(home, system, installed, needs_user=False)  # compared with what was installed
    if action == "status":
        return _status(manager, as_json=as_json)
    before = read(manager.path)
    if before is not None and not manager.is_ours(before):
        raise CliError(f"{manager.path} was not written by Meantime.", "Remove or rename it first.", FAILED)
    if action == "install":
        return _install(manager, home, before, write=not only_print, ask=not yes, own=not system)
    return _uninstall(manager, before, write=not only_print, ask=not yes)


def _manager(home: Home, system: bool, user: str | None, *, needs_user: bool) -> ServiceManager:
    if system is False and user is not None:
        raise CliError("--run-as is for --system.", "Your own service runs as you.", USAGE)
    if system and user is None and needs_user:
        hint = "Name the user that commands of agents run as: --run-as NAME"
        raise CliError("A service of the system needs a user.", hint, USAGE)
    if user is not None:
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise CliError(f"There is no user {user!r}.", "Make it first, or name another.", USAGE) from None
    is_own = user is None or pwd.getpwnam(user).pw_uid == os.getuid()
    hidden = "" if is_own else os.path.expanduser("~")
    environ = {
        "MEANTIME_HOME": f"{STATE}/{NAME}" if system else str(home.folder),
        "MEANTIME_CONFIG": f"/etc/{NAME}/config.toml" if system else str(home.config),
        # A service manager has a short PATH: agents and MCP servers of the configuration would not be found.
        "PATH": search_path(os.environ.get("PATH", os.defpath), hidden),
    }
    program = [*executable.path(), "up", "--foreground"]
    if sys.platform == "darwin":
        program.append("--log-file")  # launchd keeps what is written to stderr in a file without a limit
    if any(not word.isprintable() for word in (*program, *environ.values())):
        raise CliError("A path here has a line break or another control character.", "Rename it.", FAILED)
    service = Service(program=program, environ=environ, user=(user or "root") if system else None)
    return service_manager(sys.platform, service, os.environ)


def _install(
    manager: ServiceManager, home: Home, before: str | None, *, write: bool, ask: bool, own: bool
) -> int:
    change = FileChange(manager.path, before, manager.text)
    if not change.is_one and problem_with(manager.state) is None:
        echo("The service is installed already, and runs; nothing to change.")
        return 0
    running = own and answers(home) and problem_with(manager.state) is not None
    if running and write:
        what = "The daemon runs already, outside of the service."
        raise CliError(what, "Stop it first; commands run on: meantime down --keep", FAILED)
    if not _agreed(change, manager.enable, ask=ask and write):
        return 1
    if not write:
        return 0
    if change.is_one:
        change.write(copy=False)
        manager.path.chmod(0o644)  # no secret is in it, and `systemctl` of others may read it
        echo(f"wrote {manager.path}")
    _run(manager.enable, f"The file is written. Look at `{shlex.join(manager.log)}`, then run it again.")
    echo("The daemon runs as a service.\n  meantime service status    how it is")
    if own and sys.platform == "linux" and not Path(LINGER, pwd.getpwuid(os.getuid()).pw_name).exists():
        echo("  loginctl enable-linger     lets it run while you are not logged in")
    return 0


def _uninstall(manager: ServiceManager, before: str | None, *, write: bool, ask: bool) -> int:
    if before is None:
        echo("The service is not installed; nothing to change.")
        return 0
    change = FileChange(manager.path, before, None)
    if not _agreed(change, manager.disable, ask=ask and write):
        return 1
    if write:
        # A manager that is not there, or never read the file, has nothing to stop.
        problems = [problem for each in manager.disable if (problem := problem_with(each))]
        change.write(copy=False)
        echo(f"removed {manager.path}")
        for problem in problems:
            echo(f"The service was not stopped: {plain_lines(problem)}", err=True)
        for each in manager.forget:
            problem_with(each)
    return 0


def _status(manager: ServiceManager, *, as_json: bool) -> int:
    found = read(manager.path)
    installed = found is not None and manager.is_ours(found)
    current, active = found == manager.text, installed and problem_with(manager.state) is None
    if as_json:
        said = {"manager": manager.title, "path": str(manager.path)}
        say_json({**said, "installed": installed, "current": installed and current, "active": active})
    elif not installed:
        echo("The service is not installed.\n  meantime service install    shows the change first")
    else:
        echo(f"The service {'runs' if active else 'does not run'} ({manager.title}).\n  {manager.path}")
        if not current:
            echo("  It differs from what `meantime service install` would write now.")
    return 0 if installed else NOT_FOUND


def _agreed(change: FileChange, commands: Sequence[Command], *, ask: bool) -> bool:
    echo(plain_lines(change.shown()), nl=False)
    for each in commands:
        echo(f"$ {shlex.join(each)}")
    if not ask:
        return True
    if not sys.stdin.isatty():
        raise CliError("Nothing was changed.", "Say --yes to make this change.", USAGE)
    return confirmed("Make this change?")


def _run(commands: Sequence[Command], hint: str) -> None:
    for each in commands:
        problem = problem_with(each)
        if problem is not None:
            raise CliError(f"`{shlex.join(each)}` failed: {plain_lines(problem)}", hint, FAILED)
