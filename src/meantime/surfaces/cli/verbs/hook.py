"""`meantime hook …`: what a coding agent runs at its own boundaries.

It must never be in the agent's way: it has two seconds, starts no daemon, and whatever goes wrong is a line
on stderr and exit 0. (Exit 2 means something to agents: only `wait` uses it, to wake one.)
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from meantime.surfaces.cli.following import patiently
from meantime.surfaces.cli.speaking import Daemon
from meantime.surfaces.cli.trouble import Trouble
from meantime.surfaces.cli.unread import Thread, is_read, wait_unread
from meantime.surfaces.hooks.call import HOSTS, MOMENTS, PRE_TOOL, WAIT, Call, read
from meantime.surfaces.hooks.shown import Busy, locked
from meantime.surfaces.hooks.telling import Telling

BUDGET = 1.8  # seconds, in all
PATIENCE = 1.0  # seconds for one answer, and for another hook of the same conversation
AFTERWARDS = 30.0  # seconds for the same, where nobody waits for us
RETURN = 600.0  # seconds that a daemon which went away is waited for: it may be upgraded
WAKE = 2  # the exit code that wakes an idle agent
MOST = 16_000_000  # bytes of stdin: what a tool printed may be in it


class TooLate(BaseException):
    """The agent has waited long enough."""


@click.command("hook", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("moment", metavar=f"[{'|'.join(MOMENTS)}]")
@click.option("--host", default=HOSTS[0], show_default=True, metavar=f"[{'|'.join(HOSTS)}]")
def command(moment: str, host: str) -> int:
    """What a coding agent runs at its own boundaries; `meantime install` configures it.

    The agent's JSON is read from stdin. Unread notices of its conversation are printed in the form that it
    puts before its model. `wait` blocks until there are some, prints them on stderr, and exits with 2.
    `pre-tool` tells nothing: it writes the session's name into a call of our MCP server.
    """
    try:
        return _hook(moment, host)
    except KeyboardInterrupt:
        return 0
    except (
        Exception,
        TooLate,
    ) as problem:  # an agent's work is worth more than our notice, which is not lost
        return _nothing(_why(problem))


def _hook(moment: str, host: str) -> int:
    if moment not in MOMENTS or host not in HOSTS:
        return _nothing(f"There is no hook {moment!r} for {host!r}.")
    call = read(moment, host, sys.stdin.buffer.read(MOST), dict(os.environ))
    if call is None:
        return 0
    if moment == PRE_TOOL:
        _printed(sys.stdout, call.named)
        return 0
    daemon = Daemon(start=False)
    if moment != WAIT:
        return _told(daemon, call)
    return _woken(daemon, call) if daemon.home.http_socket.exists() else 0


def _told(daemon: Daemon, call: Call) -> int:
    telling = Telling(daemon, daemon.home.folder, call, PATIENCE)
    told = ""
    try:
        if daemon.home.http_socket.exists():  # else nobody has handed anything off
            told = _in_time(telling)
    except (Exception, TooLate) as problem:
        _nothing(_why(problem))
    text = "\n\n".join(filter(None, (call.greeting, told)))
    if text and not _printed(sys.stdout, call.answer(text)) and told:
        telling.give_back()
    return 0


def _in_time(telling: Telling) -> str:
    signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, BUDGET)
    try:
        return telling.text()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _woken(daemon: Daemon, call: Call) -> int:
    """In the background of an agent that has ended its turn: one for each conversation is enough."""
    parent = os.getppid()
    thread = Thread(daemon, call.thread)
    with locked(daemon.home.folder, call.thread, "waiting", 0):
        if thread.is_over():
            return 0
        wanted = lambda: os.getppid() == parent and is_read()  # noqa: E731
        while patiently(daemon, lambda: wait_unread(thread, None, wanted), RETURN, silent=True):
            telling = Telling(daemon, daemon.home.folder, call, AFTERWARDS)
            text = telling.text()
            if not text:
                continue  # the conversation had it already
            if _printed(sys.stderr, text):
                return WAKE
            telling.give_back()
    return 0


def _printed(stream: Any, text: str) -> bool:
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except OSError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), stream.fileno()
        )  # else the interpreter complains at its end
        return False
    return True


def _too_late(number: int, frame: object) -> None:
    raise TooLate


def _why(problem: BaseException) -> str:
    match problem:
        case TooLate():
            return "The daemon took too long."
        case Busy():
            return "Another hook of this conversation is at work."
        case Trouble():
            return problem.what
        case _:
            return f"{type(problem).__name__}: {problem}"


def _nothing(why: str) -> int:
    _printed(sys.stderr, f"meantime hook: {why}")
    return 0
