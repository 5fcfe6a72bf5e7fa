"""The file that lets a service manager run the daemon: a unit of systemd, or a property list of launchd."""

from __future__ import annotations

import os
import plistlib
from collections.abc import Mapping, Sequence

from msgspec import Struct

NAME = "meantime"
LABEL = "meantime.daemon"  # launchd's name for it
DESCRIPTION = "Meantime runs the slow work of agents in the background"
MARK = "# Written by `meantime service install`. `meantime service uninstall` removes it."
START = 600  # seconds: a large ledger is examined after a crash before the daemon is ready
STOP = 60
WATCHDOG = 120  # seconds in which the event loop must have said once that it is alive; it says so each second
FILES = 65_536


class Service(Struct, frozen=True, kw_only=True):
    """The daemon as a service: its command, its environment, and for a system's service its user."""

    program: Sequence[str]
    environ: Mapping[str, str]
    user: str | None = None  # None: a service of the person who installs it


def search_path(path: str, hidden: str = "") -> str:
    """The PATH of a service: each folder once, and none below `hidden`, the home of somebody else, which its
    user could not enter."""
    home = os.path.normpath(hidden) if hidden else ""
    folders = dict.fromkeys(os.path.normpath(folder) for folder in path.split(os.pathsep) if folder)
    is_hidden = home not in ("", "/")
    kept = [one for one in folders if not (is_hidden and f"{one}/".startswith(f"{home}/"))]
    return os.pathsep.join(kept) or os.defpath


def systemd_unit(service: Service) -> str:
    """KillMode=process leaves running commands to the next daemon, which adopts them."""
    lines = [
        MARK,
        "[Unit]",
        f"Description={DESCRIPTION}",
        "StartLimitIntervalSec=60",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={' '.join(_word(word, '$') for word in service.program)}",
        *(f"Environment={_word(f'{name}={value}')}" for name, value in service.environ.items()),
        "KillMode=process",
        f"TimeoutStartSec={START}",
        f"TimeoutStopSec={STOP}",
        f"WatchdogSec={WATCHDOG}",
        "Restart=on-failure",
        "RestartSec=1",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        f"LimitNOFILE={FILES}",
        *(() if service.user is None else _of_the_system(service.user)),
        "",
        "[Install]",
        f"WantedBy={'default.target' if service.user is None else 'multi-user.target'}",
    ]
    return "\n".join(lines) + "\n"


def _of_the_system(user: str) -> list[str]:
    """These hold for the commands of agents, too: they may not become root, nor change the system."""
    return [
        f"User={user}",
        f"StateDirectory={NAME}",
        "StateDirectoryMode=0700",
        "NoNewPrivileges=yes",
        "ProtectSystem=full",
        "ProtectKernelTunables=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "ProtectClock=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
    ]


def _word(text: str, doubled: str = "") -> str:
    """One word of a unit: systemd expands % everywhere, and $ in commands."""
    for sign in f"%{doubled}":
        text = text.replace(sign, sign * 2)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def launchd_plist(service: Service) -> str:
    """AbandonProcessGroup leaves running commands to the next daemon, as KillMode=process does."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(service.program),
            "EnvironmentVariables": dict(service.environ),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "AbandonProcessGroup": True,
            "ExitTimeOut": STOP,
            "SoftResourceLimits": {"NumberOfFiles": FILES},
            **({} if service.user is None else {"UserName": service.user}),
        },
        sort_keys=False,
    ).decode()
