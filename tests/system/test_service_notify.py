"""Messages to a service manager, over a real socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.system.service_notify import ServiceNotify


@pytest.mark.parametrize("name", ["{folder}/notify", "@meantime-{folder}"], ids=["path", "abstract"])
def test_a_manager_receives_each_message(tmp_path: Path, name: str):
    address = name.format(folder=tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address[1:]}" if address[0] == "@" else address)
        manager.settimeout(LIMIT)
        notify = ServiceNotify.take({"NOTIFY_SOCKET": address})
        notify.ready()
        notify.alive()
        notify.stopping()
        assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_commands_do_not_inherit_the_managers_variables():
    environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2", "PATH": "/bin"}
    ServiceNotify.take(environ)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "/nowhere/at/all"])
def test_without_a_reachable_manager_nothing_is_said(address: str | None):
    ServiceNotify.take({} if address is None else {"NOTIFY_SOCKET": address}).ready()
