"""`meantime token`: the tokens that were given out, one more, or one less."""

from __future__ import annotations

import time

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import ChoiceType, Whole
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any

_COLUMNS = ("ID", "NAME", "MAY", "STATE", "USED", "EXPIRES")


@verb("token")
@argument("action", type=ChoiceType("list", "create", "revoke"))
@argument("names", nargs=-1, metavar="[NAME|ID…]")
@option("--write", is_flag=True, help="create: it can change things; otherwise it only reads.")
@option("--thread", metavar="ID", help="create: it sees this conversation only.")
@option("--question", metavar="TASK", help="create: it can read TASK and answer its question, nothing else.")
@option("--days", type=Whole(1, 365), default=30, show_default=True, help="create: how long it lasts.")
@as_json
def command(
    action: str,
    names: tuple[str, ...],
    write: bool,
    thread: str | None,
    question: str | None,
    days: int,
    as_json: bool,
) -> None:
    """Tokens for the HTTP API and the page: `token list`, `token create NAME`, `token revoke ID…`.

    NAME says whom the token is for. A token is shown once, when it is made: only its hash is kept.
    """
    with_daemon = daemon()
    if action == "list":
        _list(with_daemon, as_json=as_json)
    elif action == "revoke":
        _revoke(with_daemon, names, as_json=as_json)
    else:
        asked = None if question is None else task_search.task(with_daemon, question)["id"]
        access = "write" if write or asked is not None else "read"
        wish = {"access": access, "thread": thread, "question": asked, "days": days}
        _create(with_daemon, names, wish, as_json=as_json)


def _list(with_daemon: Daemon, *, as_json: bool) -> None:
    answer = with_daemon.get("/v1/tokens")
    if as_json:
        say_json(answer)
    elif not answer["tokens"]:
        echo("no tokens")
    else:
        echo("\n".join(task_format.table(_COLUMNS, [_row(one) for one in answer["tokens"]], shrink=1)))


def _create(with_daemon: Daemon, names: tuple[str, ...], wish: dict[str, Any], *, as_json: bool) -> None:
    if not names:
        raise CliError("A token needs a name.", "Say whom it is for: meantime token create NAME", USAGE)
    made = with_daemon.post("/v1/tokens", {"name": " ".join(names), **wish})
    if as_json:
        say_json(made)
        return
    echo(made["token"])
    echo(f"It is shown once. Revoke it with: meantime token revoke {made['id']}", err=True)


def _revoke(with_daemon: Daemon, ids: tuple[str, ...], *, as_json: bool) -> None:
    if not ids:
        raise CliError("Which token?", "`meantime token list` shows their ids.", USAGE)
    for id in ids:
        revoked = with_daemon.post(f"/v1/tokens/{part(id)}/revoke")
        if as_json:
            say_json(revoked)
        else:
            echo(f"revoked {revoked['id']} ({plain(revoked['name'])})")


def _row(token: dict[str, Any]) -> tuple[str, ...]:
    scope = token["thread"] or token["question"]
    rights = "answer" if token["question"] else token["access"]
    return (
        token["id"],
        plain(token["name"]),
        rights if scope is None else f"{rights} {plain(scope)}",
        token["state"],
        _span(token["usedAt"], "{} ago", "never"),
        _span(token["expiresAt"], "in {}", "") if token["state"] == "valid" else "",
    )


def _span(iso: object, words: str, absent: str) -> str:
    moment = task_format.moment(iso)
    return absent if moment is None else words.format(task_format.span(abs(time.time() - moment)))
