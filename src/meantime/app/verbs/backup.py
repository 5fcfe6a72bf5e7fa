"""`meantime backup` and `meantime restore`: a ledger in one file, and back."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from meantime.app.ledger_backup import BackupSummary, back_up
from meantime.app.ledger_restore import restore
from meantime.daemon.home import BadHome
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.terminal.errors import CliError
from meantime.surfaces.terminal.std_streams import echo

_ledger = option("--ledger", metavar="PATH", help="A ledger of your own program instead.")
_file = argument("file", metavar="FILE")


@verb("backup", starts=False)
@_file
@option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@_ledger
@as_json
def backup(file: str, force: bool, ledger: str | None, as_json: bool) -> int:
    """Write tasks, notices, transcripts, results and outputs to FILE, a tar. The daemon may run meanwhile,
    or not; nothing is stopped."""
    source, target = Path(ledger) if ledger else daemon().home.ledger, Path(file)
    if not source.exists():
        raise CliError(f"There is no ledger {source}.", "Name it with --ledger, or set MEANTIME_HOME.")
    with _told(target):
        account = back_up(source, target, overwrite=force)
    size = os.stat(target).st_size
    if as_json:
        say_json({"file": str(target.absolute()), "bytes": size, **_wire(account)})
    else:
        echo(f"Wrote {file} ({_megabytes(size)}): {_counted(account)}.")
        _show_findings(account)
    return int(bool(account.findings))


@verb("restore", starts=False)
@_file
@_ledger
@as_json
def restore_(file: str, ledger: str | None, as_json: bool) -> int:
    """Bring back what FILE holds, into a home that has no ledger."""
    home = daemon().home
    place = Path(ledger) if ledger else home.ledger
    with _told(Path(file)):
        if ledger is None:
            home.make()
        account = restore(Path(file), place, is_home=ledger is None)
    if as_json:
        say_json({"ledger": str(place), **_wire(account)})
        return int(bool(account.findings))
    echo(f"Restored {ledger or home.folder}: {_counted(account)}.")
    if account.active:
        text = "had not ended when the backup was made: lost, and told, when the ledger is opened."
        echo(f"  {account.active} {text}")
    if ledger is None:
        echo("  meantime up        start the daemon")
    _show_findings(account)
    return int(bool(account.findings))


@contextmanager
def _told(file: Path) -> Generator[None]:
    try:
        yield
    except (MeantimeError, BadHome) as problem:
        raise CliError(problem.message, problem.hint) from problem
    except OSError as problem:
        where = problem.filename or file
        raise CliError(
            f"{os.fsdecode(where)}: {problem.strerror or problem}.", "Nothing was changed. Look at the disk."
        ) from problem


def _counted(account: BackupSummary) -> str:
    tasks = f"{account.tasks} task{'' if account.tasks == 1 else 's'}"
    return f"{tasks}, {account.unread} untold notice{'' if account.unread == 1 else 's'}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _wire(account: BackupSummary) -> dict[str, object]:
    return {
        "ok": not account.findings,
        "tasks": account.tasks,
        "active": account.active,
        "untold": account.unread,
        "findings": [finding._asdict() for finding in account.findings],
    }


def _show_findings(account: BackupSummary) -> None:
    for finding in account.findings:
        echo(f"✗ {finding.what}", err=True)
        echo("".join(f"    {one}\n" for one in finding.which), nl=False, err=True)
