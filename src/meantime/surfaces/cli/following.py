"""Going on where one was when the daemon goes away and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import click

from .speaking import Daemon
from .trouble import Gone, Trouble

PAUSE = 0.1  # seconds between two looks
T = TypeVar("T")


def patiently(daemon: Daemon, ask: Callable[[], T], seconds: float) -> T:
    """Calls `ask` until it has its answer. It must go on from where it was. A daemon that goes away in
    the middle is waited for, and not started: somebody may have stopped it on purpose."""
    while True:
        try:
            return ask()
        except Gone as gone:
            click.echo(f"meantime: {gone.what} Waiting for it to come back.", err=True)
        _wait_for(daemon, seconds)
        click.echo("meantime: It is back.", err=True)


def _wait_for(daemon: Daemon, seconds: float) -> None:
    until = time.monotonic() + seconds
    starts, daemon.start = daemon.start, False
    try:
        while True:
            try:
                daemon.get("/v1/health")
                return
            except Trouble as absent:
                if time.monotonic() >= until:
                    raise Gone(
                        "The daemon did not come back.", "The work goes on. `meantime up` starts a daemon."
                    ) from absent
            time.sleep(PAUSE)
    finally:
        daemon.start = starts
