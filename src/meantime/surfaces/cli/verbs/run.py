"""`meantime run`: hands a command to the daemon, in the folder and with the environment of the caller."""

from __future__ import annotations

import json
import os
import time

from meantime.surfaces.caller.caller_thread import PERSON, own_task, own_thread
from meantime.surfaces.cli.local_time import moment
from meantime.surfaces.cli.parameter_types import DELAY, DURATION, FilePath
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import (
    INTERRUPTED,
    TASK_FAILED,
    USAGE,
    CliError,
    DaemonGone,
    DaemonRefused,
)
from meantime.surfaces.terminal.exit_code import own_code
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire
from meantime.surfaces.terminal.terminal_text import on_terminal, plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any

MOST = 1_000_000  # bytes of a request that the daemon takes
NONE = -1  # no timeout
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # 32 of them


@verb("run", allow_interspersed_args=False)
@argument("argv", nargs=-1, metavar="[--] COMMAND…")
@option("-c", "line", metavar="TEXT", help="A line for /bin/sh, in place of COMMAND.")
@option("-a", "--agent", metavar="NAME", help="Start this agent; COMMAND is its prompt.")
@option("-n", "--name", metavar="TEXT", help="Its name.")
@option("-t", "--timeout", type=DURATION, metavar="TIME", help="Stop it after 90, 90s, 5m; 0: never.")
@option("-b", "--batch", metavar="ID", help="The batch that it belongs to.")
@option(
    "--thread",
    metavar="ID",
    help="The conversation that is told of its ending; by default that of the agent that starts it.",
)
@option("--cwd", type=FilePath(), metavar="DIR", help="Where to run it; here, if not given.")
@option("-e", "--env", "variables", multiple=True, metavar="K=V", help="Set a variable; K alone: yours.")
@option("--no-env", is_flag=True, help="Do not hand over your environment, only what -e says.")
@option("--id", metavar="ID", help="An id of your own: a second start with it is refused.")
@option("--retry", is_flag=True, help="It may run again if it is unknown how it ended; needs --no-env.")
@option("--place", metavar="PLACE", help="Run it at a worker: pool:NAME.")
@option("--delay", type=DELAY, metavar="TIME", help="Start it after 90s, 20m; needs --no-env.")
@option("--at", metavar="TIME", help="Start it at 17:30, or 2026-05-01T17:30; needs --no-env.")
@option("--pty", is_flag=True, help="Give it a terminal.")
@option("--stdin-open", is_flag=True, help="Keep its stdin open for `meantime send`.")
@option("-w", "--wait", is_flag=True, help="Show its output, and end with its exit code.")
@option("--raw", is_flag=True, help="With --wait: let it do anything to your terminal.")
@option("-q", "--quiet", is_flag=True, help="Print the id and nothing else.")
@as_json
def command(argv: tuple[str, ...], line: str | None, wait: bool, **given: Any) -> int:
    """Start a command, or with --agent a configured agent, in the background.

    It gets your folder and your environment, and nothing to read on its stdin; for that there is
    --stdin-open with `meantime send`. The daemon keeps the names of the variables that -e sets,
    never a value.
    """
    if argv and line is not None:
        raise CliError("Give a COMMAND or -c, not both.", USAGE_HINT, USAGE)
    if not argv and line is None:
        what = "Nothing to run." if given["agent"] is None else "An agent needs a prompt."
        raise CliError(what, USAGE_HINT if given["agent"] is None else AGENT_HINT, USAGE)
    with_daemon = daemon()
    order = _order(list(argv) if line is None else line, given)
    if wait:
        return _waited(with_daemon, order, raw=given["raw"], as_json=given["as_json"])
    task = started(with_daemon, order)
    if given["as_json"]:
        say_json(task)
    elif given["quiet"]:
        echo(task["id"])
    else:
        _say(task)
    return 0


UNREAD = "The configuration has changed since the daemon started: meantime down && meantime up"
USAGE_HINT = "For example: meantime run -- pytest -q"
AGENT_HINT = "For example: meantime run --agent NAME -- Find out why the tests fail"


def _order(what: str | list[str], given: dict[str, Any]) -> Wire:
    env = _text_only(_named(given["variables"]))
    # Another machine has an environment of its own.
    own = None if given["no_env"] or given["place"] else _text_only(dict(os.environ))
    is_delayed = given["delay"] is not None or given["at"] is not None
    if is_delayed and (env or own) and given["agent"] is None:
        problem = "A command that starts later cannot have variables: their values are not kept."
        raise CliError(problem, _without_variables(given), USAGE)
    if given["delay"] is not None and given["at"] is not None:
        raise CliError("Give --delay or --at, not both.", "For example: --delay 20m, or --at 17:30", USAGE)
    if given["retry"] and (env or own):
        problem = "A command with --retry cannot have variables: their values are not kept."
        raise CliError(problem, _without_variables(given), USAGE)
    order: Wire = {
        "id": given["id"] or new_id("t_"),
        "thread": own_thread() if given["thread"] is None else given["thread"],
        "parent": own_task(),
        "command": what,
        "cwd": os.path.abspath(given["cwd"] or here("Go elsewhere, or name one with --cwd.")),
        "env": env or None,
        "environment": own,  # what the daemon was started with is not this caller's
        "description": given["name"],
        # Without one of its own it would join whatever is open in the thread: a person did not ask for that.
        "batch": given["batch"] or new_id("b_"),
        "timeout": NONE if given["timeout"] == 0 else given["timeout"],
        "retry": "idempotent" if given["retry"] else None,
        "pty": given["pty"] or None,
        "place": given["place"],
        "delay": given["delay"],
        "at": None if given["at"] is None else moment(given["at"], time.time()),
        "openStdin": given["stdin_open"] or None,
        "notify": None if _is_conversation(given["thread"]) else False,
    }
    if given["agent"] is not None:
        order |= _agent(what, given)
    order = {name: value for name, value in order.items() if value is not None}
    for word in [order["cwd"], *([what] if isinstance(what, str) else what)]:
        if not _is_text(word):
            raise CliError(f"{plain(word)!r} is not UTF-8.", "Wrap it in a script.", USAGE)
    size = len(json.dumps(order))
    if size > MOST:
        raise CliError(
            f"The command and its environment have {size:,} bytes; the daemon takes {MOST:,}.",
            "Use --no-env with -e for the variables that it needs, or a script.",
            USAGE,
        )
    return order


def _without_variables(given: dict[str, Any]) -> str:
    """How to start it without values that would have to be kept."""
    needed = "Use --no-env" if not given["variables"] else "Leave out -e"
    if given["variables"] and not given["no_env"] and not given["place"]:
        needed += " and use --no-env"
    return f"{needed}: it gets the daemon's environment."


def _agent(what: str | list[str], given: dict[str, Any]) -> Wire:
    """In place of a command: it has neither a stdin nor an environment of the caller's."""
    for name in ("variables", "pty", "stdin_open", "retry"):
        if given[name]:
            raise CliError("--agent takes no -e, --pty, --stdin-open or --retry.", AGENT_HINT, USAGE)
    prompt = what if isinstance(what, str) else " ".join(what)
    return {"agent": given["agent"], "prompt": prompt, "command": None, "environment": None, "env": None}


def _is_conversation(named: str | None) -> bool:
    """Whether somebody takes its notices. A person at a shell is nobody's agent: unread notices of what one
    has seen end would only pile up. A thread that was named is meant, whatever its name."""
    return named is not None or own_thread() != PERSON


def new_id(prefix: str) -> str:
    return prefix + "".join(LETTERS[byte % 32] for byte in os.urandom(10))  # `secrets` loads OpenSSL


def here(hint: str) -> str:
    """The current folder; an error with this hint where there is none."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise CliError("The current folder is gone.", hint, USAGE) from None


def _named(variables: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable in variables:
        name, equals, value = variable.partition("=")
        if not name:
            raise CliError(f"-e {variable!r} names no variable.", "Write -e NAME=value.", USAGE)
        if equals:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
    return found


def _text_only(found: dict[str, str]) -> dict[str, str]:
    strange = sorted(name for name, value in found.items() if not _is_text(name + value))
    if strange:
        names = ", ".join(plain(name) for name in strange)
        echo(f"meantime: not UTF-8, and therefore not handed over: {names}", err=True)
    return {name: value for name, value in found.items() if name not in strange}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def started(with_daemon: Daemon, order: Wire) -> Wire:
    """Starts it once, even if the daemon went away before it answered: the id is ours, so it can be asked."""
    try:
        return with_daemon.post("/v1/tasks", order)
    except DaemonGone:
        pass
    except DaemonRefused as refused:
        if refused.code == "duplicate_id":
            refused.hint = f"Nothing was started. `meantime show {order['id']}` shows that task."
        if refused.code == "unknown_agent" and _was_configured_since(with_daemon):
            refused.hint = UNREAD
        raise
    again = Daemon(with_daemon.home, start=with_daemon.start)  # it may start the next one
    try:
        return again.get(f"/v1/tasks/{part(order['id'])}")
    except DaemonRefused as refused:
        if refused.status != 404:
            raise
        return again.post("/v1/tasks", order)
    finally:
        again.close()


def _was_configured_since(with_daemon: Daemon) -> bool:
    """Whether the daemon has read the file as it is now: it does so when it starts."""
    try:
        changed = with_daemon.home.config.stat().st_mtime
    except OSError:
        return False
    return changed > time.time() - with_daemon.get("/v1/health")["uptime"]


def _say(task: Wire) -> None:
    state = "queued" if task["state"] == "queued" else "started"
    due = task_format.moment(task.get("notBefore"))
    when = "" if due is None else ", starts now" if due <= time.time() else f", {task_format.doing(task)}"
    echo(f"{state} {task['id']} ({task_format.title(task)}){when}")
    if on_terminal():
        short = task_format.short(task["id"])
        for words, does in (
            (f"logs -f {short}", "follow output"),
            (f"wait {short}", "block until done"),
            (f"cancel {short}", "stop it"),
        ):
            echo(f"  meantime {words:<17} {task_format.coloured(does, '2')}")


def _waited(with_daemon: Daemon, order: Wire, *, raw: bool, as_json: bool) -> int:
    from meantime.surfaces.cli.first_interrupt import interrupt_once
    from meantime.surfaces.cli.task_follower import ended, live

    interrupt_once()
    runs = "may run"
    try:
        task = started(with_daemon, order)
        runs = "runs on"
        if not as_json:
            live(with_daemon, task["id"], raw=raw)
        task = ended(with_daemon, task["id"])
    except KeyboardInterrupt:
        short = task_format.short(order["id"])
        echo(
            f"\nmeantime: {short} {runs}.\n  `meantime logs -f {short}` follows it, "
            f"`meantime cancel {short}` stops it.",
            err=True,
        )
        return INTERRUPTED
    code = own_code(task)
    if as_json:
        say_json(task)
    elif code and task.get("exitCode") is None:
        echo(f"meantime: {plain(task.get('error') or task_format.status(task))}", err=True)
    return code if task["state"] != "lost" else TASK_FAILED
