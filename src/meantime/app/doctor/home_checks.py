"""The home: its folder, its configuration, its ledger, its daemon."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from meantime import __version__
from meantime.app.config_sources import load
from meantime.app.read_only_ledger import LedgerTooOld, check_schema, read_only, size
from meantime.daemon.daemon_autostart import answers
from meantime.daemon.home import BadHome, Home
from meantime.daemon.owner_process import listener, owner
from meantime.kernel.errors import LedgerTooNew, MeantimeError
from meantime.stores.sqlite.checkpoints import number_in
from meantime.stores.sqlite.contents import find_all
from meantime.stores.sqlite.ledger_lock import checkpoints_seen, was_made
from meantime.stores.sqlite.salvage import last_set_aside
from meantime.surfaces.daemon_client.daemon_client import Daemon

from .check_row import BAD, OK, WARN, CheckRow, Patient

SALVAGE = "Keep a copy. Meantime.open(path, salvage=True) saves the rest."


def folder(patient: Patient) -> Iterator[CheckRow]:
    folder = patient.home.folder
    try:
        patient.home.check()
    except BadHome as problem:
        yield CheckRow("home", BAD, problem.message, problem.hint)
        return
    if not folder.exists():
        yield CheckRow("home", OK, f"{folder} (not there yet: the daemon makes it)")
        return
    if not os.access(folder, os.W_OK):
        yield CheckRow("home", BAD, f"{folder} cannot be written to.", f"chmod 700 {folder}")
        return
    loose = [path.name for path in folder.iterdir() if _is_loose(path)]
    if loose:
        named = ", ".join(sorted(loose)[:5])
        yield CheckRow("home", WARN, f"{folder}: others may use {named}.", f"chmod -R go-rwx {folder}")
    else:
        yield CheckRow("home", OK, f"{folder} (0700)")


def _is_loose(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.lstat().st_mode) & 0o077) and not path.is_symlink()
    except OSError:
        return False


def config(patient: Patient) -> Iterator[CheckRow]:
    path = patient.home.config
    try:
        config = load(patient.home, patient.environ)
    except MeantimeError as problem:
        yield CheckRow("config", BAD, problem.message, problem.hint)
        return
    changed = sum(source != "default" for _, _, source in config.rows())
    yield CheckRow("config", OK, f"{path}{'' if path.exists() else ' (none)'}; {changed} values set")
    if path.exists() and (path.stat().st_mode & 0o022 or path.stat().st_uid not in (0, os.getuid())):
        yield CheckRow(
            "config", WARN, f"others can change {path}, and so what runs here", f"chmod go-w {path}"
        )
    for module in config.values.tools:
        if not is_there(module):
            todo = f"Install it for {sys.executable}, or add its folder to the daemon's PYTHONPATH."
            yield CheckRow("tools", BAD, f"{module} is not there for the daemon's Python.", todo)


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def ledger(patient: Patient) -> Iterator[CheckRow]:
    ledger = patient.home.ledger
    if not ledger.exists():
        yield _absent(ledger)
        return
    try:
        with read_only(ledger, owned=owner(patient.home) is not None) as db:
            check_schema(db, ledger)
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
            unreadable = sum(1 for _ in find_all(db))
    except LedgerTooOld as problem:
        yield CheckRow("ledger", WARN, problem.message, problem.hint)
        return
    except LedgerTooNew as problem:
        yield CheckRow("ledger", BAD, problem.message, problem.hint)
        return
    except MeantimeError as problem:
        yield CheckRow("ledger", BAD, problem.message, SALVAGE)
        return
    if (number_in(ledger) or 0) < checkpoints_seen(ledger):
        todo = "Put the newer one back, or restore a backup: see docs/guides/backup.md."
        yield CheckRow("ledger", BAD, "an older copy: its lock says that a newer one was there", todo)
    elif unreadable:
        text = f"{unreadable} records cannot be read; the rest can"
        yield CheckRow("ledger", BAD, text, "`meantime audit` names them.")
    elif found == "ok":
        yield CheckRow("ledger", OK, f"sound; {size(ledger)}")
    else:
        yield CheckRow("ledger", BAD, f"damaged: {found}", SALVAGE)


def _absent(ledger: Path) -> CheckRow:
    if not was_made(ledger):
        return CheckRow("ledger", OK, f"{ledger} (not there yet)")
    aside = last_set_aside(ledger)
    if aside is not None:
        return CheckRow("ledger", BAD, f"damaged, and set aside in {aside}", SALVAGE)
    todo = f"Put it back, or restore a backup. To begin anew: rm {ledger}.lock"
    return CheckRow("ledger", BAD, f"{ledger} is gone: its lock says that it was there.", todo)


def daemon(patient: Patient) -> Iterator[CheckRow]:
    home = patient.home
    leader = owner(home)
    if leader is None:
        yield CheckRow("daemon", OK, "not running; it is started when it is needed")
        yield from _stale(home)
    elif not leader.is_daemon:
        todo = "Let that process end, or set MEANTIME_HOME to another folder."
        yield CheckRow("daemon", BAD, f"the ledger is owned by {leader}, which is not a daemon", todo)
    elif not answers(home):
        todo = f"See {home.log}; then: kill {leader.pid} && meantime up"
        yield CheckRow("daemon", BAD, f"process {leader.pid} has the ledger and does not answer", todo)
    elif listener(home) != leader.pid:
        todo = "meantime down && meantime up"
        yield CheckRow(
            "daemon", BAD, f"another process than {leader.pid} listens on {home.http_socket}", todo
        )
    else:
        yield _version(home, leader.pid)
        yield from degraded(home)


def _version(home: Home, pid: int) -> CheckRow:
    version = str(Daemon(home, start=False).get("/v1/health").get("version"))
    if version == __version__:
        return CheckRow("daemon", OK, f"{version}, process {pid}")
    found = f"process {pid} is version {version}, and this is {__version__}"
    return CheckRow("daemon", WARN, found, "meantime down --keep && meantime up; commands run on")


def degraded(home: Home) -> Iterator[CheckRow]:
    if Daemon(home, start=False).get("/v1/info").get("degraded"):
        found = "the daemon accepts nothing new: the disk is full, failed to sync, or lost the ledger"
        yield CheckRow(
            "degraded", BAD, found, f"Look at the disk: df {home.folder}; dmesg | tail. See {home.log}"
        )


def _stale(home: Home) -> Iterator[CheckRow]:
    names = (home.discovery, home.http_socket, home.link_socket, home.wrap_socket)
    left = [path.name for path in names if path.exists()]
    if left:
        found = f"{', '.join(left)}: left by a daemon that was killed"
        yield CheckRow("stale", WARN, found, "The next daemon replaces them: meantime up")
