"""`meantime status`: how the daemon is, on one screen."""

from __future__ import annotations

from typing import Any

from meantime import __version__
from meantime.app.read_only_ledger import size
from meantime.daemon.daemon_autostart import answers
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import NO_DAEMON, DaemonRefused
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain


@verb("status", starts=False)
@as_json
def command(as_json: bool) -> int:
    """How the daemon is. It is not started by this; exit 5 if it does not run."""
    home = daemon().home
    if not answers(home):
        return _absent(home, as_json)
    with_daemon = Daemon(home, start=False)
    found = {name: with_daemon.get(f"/v1/{name}") for name in ("health", "stats")}
    found["info"] = _info(with_daemon, found["health"])
    if as_json:
        say_json({"running": True, **found})
    else:
        echo("\n".join(f"{name:<8}  {text}" for name, text in _rows(home, **found) if text))
    return 0


def _info(with_daemon: Daemon, health: dict[str, Any]) -> dict[str, Any]:
    """A daemon of another version may know less: just then its status is wanted."""
    try:
        found: dict[str, Any] = with_daemon.get("/v1/info")
    except DaemonRefused:
        found = {}
    return {"version": health.get("version"), "pid": None, "degraded": False, **found}


def _absent(home: Home, as_json: bool) -> int:
    leader = owner(home)
    if as_json:
        say_json({"running": False, "home": str(home.folder), "owner": leader._asdict() if leader else None})
    elif leader is None:
        echo(f"The daemon is not running ({home.folder}).\n  meantime up        start it")
    else:
        echo(f"{home.ledger} is owned by {leader}, which does not answer.\n  meantime doctor    look why")
    return NO_DAEMON


def _rows(home: Home, health: Any, info: Any, stats: Any) -> list[tuple[str, str]]:
    by_status, notices = stats["byStatus"], stats.get("notices", {})
    untold = sum(notices.get(state, 0) for state in ("unread", "leased"))
    return [
        ("meantime", f"{info['version']}, up {task_format.span(health['uptime'])} (pid {info['pid']})"),
        ("upgrade", _upgrade(info["version"])),
        ("degraded", "nothing new is accepted: see `meantime doctor`" if info["degraded"] else ""),
        ("door", info.get("url") or f"none on a port; see {home.log}"),
        ("home", str(home.folder)),
        ("ledger", f"{size(home.ledger)}, durability {info.get('durability', '?')}"),
        ("tasks", f"{stats['activeTasks']} active · {stats['totalTasks'] - stats['activeTasks']} ended, "
                  f"{by_status['error'] + by_status['cancelled']} not completed"),
        ("notices", f"{untold} untold · {notices.get('parked', 0)} parked · {notices.get('told', 0)} told"),
        ("limits", _limits(info.get("limits"))),
        ("agents", ", ".join(one["name"] for one in info.get("agents", []))),
        ("clients", clients_row(info)),
        ("workers", workers_row(info, stats.get("workers") or {})),
    ]  # fmt: skip


def _upgrade(version: str) -> str:
    same = version == __version__
    return "" if same else f"this is {__version__}: run `meantime down --keep && meantime up`"


def _limits(limits: dict[str, Any] | None) -> str:
    if limits is None:
        return ""
    own, total = ("no limit" if limits[name] < 0 else str(limits[name]) for name in ("perThread", "total"))
    return f"{own} per thread and kind · {total} in all, then {limits['onLimit']}"


def workers_row(info: dict[str, Any], counts: dict[str, int]) -> str:
    if not counts:
        return ""
    up = "carrier up" if counts.get("carrier_up") else "the carrier is down: see `meantime doctor`"
    versions = sorted(
        {one["version"] for one in info.get("workers", []) if one["version"] != info["version"]}
    )
    other = [f"of other versions: {', '.join(versions)}"] if versions else []
    there = _counted(len(info.get("workers", [])), "worker")
    lost = sum(count for name, count in counts.items() if name.startswith("lost_"))
    said = [
        f"{_counted(counts.get('unclaimed', 0), 'offer')} unclaimed",
        *([f"the oldest for {task_format.span(age)}"] if (age := counts.get("unclaimed_age")) else []),
        *([f"{_counted(lost, 'run')} lost"] if lost else []),
        up,
    ]
    unmet = [f"{one['waiting']} wait: {plain(one['reason'])}" for one in info.get("unmet", [])]
    return "\n          ".join([" · ".join([there, *said, *other]), *unmet])


def clients_row(info: dict[str, Any]) -> str:
    said = [_counted(len(info.get(f"{name}s", [])), name) for name in ("host", "executor")]
    return " · ".join([*said, f"{info.get('clients', 0)} watching"])


def _counted(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
