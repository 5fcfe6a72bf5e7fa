"""Service managers: where each keeps its file for the daemon, and the commands that make it read the file."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from .service_units import LABEL, MARK, NAME, Service, launchd_plist, systemd_unit

PATIENCE = 180.0  # seconds for one command: a start waits until the daemon is ready
UNIT = f"{NAME}.service"
Command = tuple[str, ...]


class ServiceManager(Struct, frozen=True, kw_only=True):
    """One of systemd or launchd, for one person or for the whole system."""

    title: str
    path: Path
    text: str
    enable: Sequence[Command]  # after the file was written
    disable: Sequence[Command]  # before the file is removed
    forget: Sequence[Command] = ()  # after the file was removed
    state: Command  # exits with 0 while the service runs
    log: Command  # shows why it does not

    def is_ours(self, text: str) -> bool:
        return MARK in text or f"<string>{LABEL}</string>" in text

    def user_in(self, text: str) -> str | None:
        """The user that an installed file of this manager names."""
        found = re.search(r"^User=(\S+)$|<key>UserName</key>\s*<string>(.*?)</string>", text, re.MULTILINE)
        return found and (found[1] or found[2])


def service_manager(platform: str, service: Service, environ: Mapping[str, str]) -> ServiceManager:
    """The one of this platform (a value of `sys.platform`)."""
    if platform == "darwin":
        return _launchd(service, environ)
    return _systemd(service, environ)


def _systemd(service: Service, environ: Mapping[str, str]) -> ServiceManager:
    own = service.user is None
    ask = ("systemctl", "--user") if own else ("systemctl",)
    folder = _own_config(environ) / "systemd/user" if own else Path("/etc/systemd/system")
    return ServiceManager(
        title=f"systemd, {'your own service' if own else f'a service of the system, as user {service.user}'}",
        path=folder / UNIT,
        text=systemd_unit(service),
        enable=[(*ask, "daemon-reload"), (*ask, "enable", "--now", UNIT)],
        disable=[(*ask, "disable", "--now", UNIT)],
        forget=[(*ask, "daemon-reload")],
        state=(*ask, "is-active", "--quiet", UNIT),
        log=("journalctl", *ask[1:], "-u", UNIT, "-n", "20"),
    )


def _launchd(service: Service, environ: Mapping[str, str]) -> ServiceManager:
    own = service.user is None
    domain = f"gui/{os.getuid()}" if own else "system"
    folder = _home(environ) / "Library/LaunchAgents" if own else Path("/Library/LaunchDaemons")
    path = folder / f"{LABEL}.plist"
    return ServiceManager(
        title=f"launchd, {'your own agent' if own else f'a daemon of the system, as user {service.user}'}",
        path=path,
        text=launchd_plist(service),
        enable=[("launchctl", "bootstrap", domain, str(path))],
        disable=[("launchctl", "bootout", f"{domain}/{LABEL}")],
        state=("launchctl", "print", f"{domain}/{LABEL}"),
        log=("tail", f"{service.environ['MEANTIME_HOME']}/daemon.log"),
    )


def problem_with(command: Command) -> str | None:
    """Runs it; None if it worked, otherwise what it said."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return f"{command[0]} is not installed here."
    except OSError as problem:
        return f"{command[0]}: {problem.strerror}."
    except subprocess.TimeoutExpired:
        return f"It did not end within {PATIENCE:.0f} s."
    if done.returncode == 0:
        return None
    return done.stdout.decode("utf-8", "replace").strip()[-1000:] or f"It ended with {done.returncode}."


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _own_config(environ: Mapping[str, str]) -> Path:
    said = environ.get("XDG_CONFIG_HOME", "")
    return Path(said) if os.path.isabs(said) else _home(environ) / ".config"
