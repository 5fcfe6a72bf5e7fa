"""`meantime down`: ends the daemon. Commands that it had started go on, unless they are to stop."""

from __future__ import annotations

import signal

from meantime.daemon.owner_process import OwnerProcess, owner, terminate
from meantime.kernel.ids import display
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import Number
from meantime.surfaces.cli.verb import as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import FAILED, NOT_ALLOWED, CliError, DaemonGone
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire
from meantime.surfaces.terminal.terminal_text import plain

ASKING = 5.0  # seconds for an answer of a daemon that may hang
SIGNALS = {"keep": signal.SIGUSR2, "stop": signal.SIGUSR1}
THEN = {
    "keep": "Running commands keep running, and open questions wait; `meantime up` adopts them.",
    "stop": "Its commands were stopped. Queued work waits for `meantime up`.",
}
AGENTS = (
    "Agents at work: those on an OpenCode server or the command line go on. Others were stopped, and "
    "`meantime resume` goes on with them:"
)


@verb("down", starts=False)
@option(
    "--keep",
    "meaning",
    flag_value="keep",
    default=True,
    help="Keep running commands, for an upgrade (default).",
)
@option("--stop", "meaning", flag_value="stop", help="Stop the commands that run, first.")
@option("--lose-queued", is_flag=True, help="Stop it even if queued commands would be lost.")
@option("--wait", type=Number(0.1, 3600), default=60.0, show_default=True, metavar="SECONDS")
@as_json
def command(meaning: str, lose_queued: bool, wait: float, as_json: bool) -> None:
    """Stop the daemon, and wait until it is gone. Functions end with it; queued work waits for the next.

    A queued command that has your environment cannot wait: values of variables are never stored. While
    there are such commands it refuses (exit 1).
    """
    home = daemon().home
    leader = owner(home)
    agents: list[Wire] = []
    if leader is not None:
        if leader.is_daemon:
            agents = _looked_at(Daemon(home, start=False), lose_queued)
        _end(leader, meaning, wait)
    if as_json:
        say_json({"running": False, "ended": leader.pid if leader else None})
    elif leader is None:
        echo("The daemon was not running.")
    else:
        echo(f"The daemon is down (pid {leader.pid}).\n  {THEN[meaning]}")
        if agents and meaning == "keep":
            named = "".join(f"\n    {display(task['id'])}  {plain(task['description'])}" for task in agents)
            echo(f"  {AGENTS}{named}")


def _looked_at(with_daemon: Daemon, lose_queued: bool) -> list[Wire]:
    """The agents that are at work."""
    try:
        if not lose_queued:
            _keep_queued(list(task_search.tasks(with_daemon, ("queued",), patience=ASKING)))
        return [
            task
            for task in task_search.tasks(with_daemon, ("running",), patience=ASKING)
            if task["kind"] == "agent"
        ]
    except DaemonGone:
        return []  # it does not answer, so it has to go
    finally:
        with_daemon.close()


def _keep_queued(queued: list[Wire]) -> None:
    """Refuses where the next daemon could not start what is queued in this one."""
    lost = [task for task in queued if not task.get("restartable", True)]
    if lost:
        commands = all(task["kind"] == "shell" for task in lost)
        many = f"{len(lost)} queued {'command' if commands else 'task'}{'s' if len(lost) > 1 else ''}"
        whose, them = ("its", "it") if len(lost) == 1 else ("their", "them")
        why = f"{whose} environment is not kept" if commands else f"what starts {them} is not kept"
        raise CliError(
            f"{many} would be lost: {why}.",
            f"Wait for {them}, cancel {them}, or: meantime down --lose-queued",
            FAILED,
        )


def _end(leader: OwnerProcess, meaning: str, wait: float) -> None:
    home = daemon().home
    if not leader.is_daemon:
        raise CliError(
            f"{home.ledger} is owned by {leader}, which is not a daemon.",
            "Only its own program can close it.",
            NOT_ALLOWED,
        )
    if not terminate(home, leader.pid, SIGNALS[meaning], wait):
        raise CliError(
            f"The daemon (pid {leader.pid}) has not ended within {wait:g} seconds.",
            f"See {home.log}. If it hangs: kill -9 {leader.pid}; nothing that was accepted is lost.",
            FAILED,
        )
