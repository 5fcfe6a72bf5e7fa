"""A real systemd, booted in namespaces of its own, runs the daemon as `meantime service install` lets it.

`make systemd` makes the file system that it boots in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import until

from .namespaces import entered, first_process

pytestmark = pytest.mark.pythons

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = ROOT / ".systemd" / "root"
BOOT = ROOT / "tests/daemon/systemd/boot"
HOME = "/var/lib/meantime"
# The watchdog of two minutes, for a test that does not wait as long.
IMPATIENT = "mkdir -p {0} && printf '[Service]\\nWatchdogSec=8\\n' > {0}/fast.conf && systemctl daemon-reload"


class Machine:
    """Commands inside, by the pid of its process 1 outside."""

    def __init__(self, init: int) -> None:
        self._init = init

    def __call__(self, *command: str) -> subprocess.CompletedProcess[str]:
        given = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"MEANTIME_HOME={HOME}", "MEANTIME_NO_START=1"]
        return entered(self._init, SYSTEM, ["env", "-i", *given, *command])

    def meantime(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self(sys.executable, "-P", "-m", "meantime", *arguments)

    def until_it_runs(self, task: str, what: str) -> None:
        """On a busy machine the watchdog may end a daemon that is only slow: the next one answers."""
        until(lambda: '"state": "running"' in self.meantime("show", "--json", task).stdout, what)

    def daemon(self) -> str:
        """The pid of the daemon that runs as the service; empty while none does."""
        ready = self("systemctl", "is-active", "meantime").stdout.strip() == "active"
        return (
            self("systemctl", "show", "--property=MainPID", "--value", "meantime").stdout.strip()
            if ready
            else ""
        )

    def next_daemon(self, last: str) -> str:
        until(lambda: self.daemon() not in ("", last), "another daemon is ready", there=self.daemon)
        return self.daemon()


@pytest.fixture
def machine() -> Iterator[Machine]:
    if os.getuid() != 0 or not SYSTEM.exists():
        pytest.skip("`make systemd` as root makes what this needs")
    folders = {str(ROOT), sys.base_prefix, sys.prefix}
    apart = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--kill-child"]
    with first_process([*apart, str(BOOT), str(SYSTEM), *sorted(folders)]) as (init, _):
        made = Machine(init)
        until(
            lambda: made("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), "booted"
        )
        yield made


def test_systemd_starts_watches_restarts_and_stops_the_daemon_and_commands_go_on(machine: Machine):
    installed = machine.meantime("service", "install", "--system", "--run-as", "root", "--yes")
    assert installed.returncode == 0, installed.stderr
    first = machine.daemon()
    assert first, "it is ready when `systemctl start` returns"
    status = machine.meantime("service", "status", "--system").stdout
    assert status.startswith("The service runs"), status
    assert "differs" not in status
    task = machine.meantime("run", "-q", "--", "sh", "-c", "echo begun; exec sleep 600").stdout.strip()
    until(lambda: "begun" in machine.meantime("logs", task).stdout, "the command has begun")

    machine("systemctl", "kill", "--signal=KILL", "--kill-whom=main", "meantime")
    second = machine.next_daemon(first)
    machine.until_it_runs(task, "a crash: the next daemon adopts the command")

    machine("sh", "-c", IMPATIENT.format("/run/systemd/system/meantime.service.d"))
    machine("systemctl", "restart", "meantime")
    third = machine.next_daemon(second)
    machine("systemctl", "kill", "--signal=STOP", "--kill-whom=main", "meantime")
    fourth = machine.next_daemon(third)
    machine.until_it_runs(task, "a hang: the watchdog has found it")

    assert machine("systemctl", "stop", "meantime").returncode == 0
    assert machine("pgrep", "-f", "sleep 600").returncode == 0, "a stop leaves the command alone"
    machine("systemctl", "start", "meantime")
    assert machine.next_daemon(fourth)
    machine.until_it_runs(task, "a stop and a start")
    assert machine.meantime("cancel", task).returncode == 0

    assert machine.meantime("service", "uninstall", "--system", "--yes").returncode == 0
    assert machine("systemctl", "cat", "meantime").returncode != 0
    assert machine.daemon() == ""
