"""`meantime inbox`: what a thread has not been told yet. A person's look settles nothing."""

from __future__ import annotations

from meantime.surfaces.caller.caller_thread import own_thread
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain, plain_lines

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any

WIDTH = 120  # characters of a text


@verb("inbox")
@argument("thread", required=False)
@option("-v", "--verbose", is_flag=True, help="The whole text of each.")
@as_json
def command(thread: str | None, verbose: bool, as_json: bool) -> None:
    """The unread notices of THREAD ($MEANTIME_THREAD, or the agent that starts this, or cli), in order.

    Looking does not settle them: the conversation is still told. `meantime wait --tell` tells it.
    """
    thread = own_thread() if thread is None else thread
    answer = daemon().get("/v1/notices", state="unread,leased,parked", thread=thread)
    if as_json:
        say_json(answer)
        return
    notices = answer["notices"]
    if not notices:
        echo(f"nothing unread in {plain(thread)}")
    for notice in notices:
        state = "" if notice.get("state") in (None, "unread") else f" [{plain(notice['state'])}]"
        line = "  ".join(part for part in _parts(notice, state, whole=verbose) if part)
        echo(f"{notice['number']}.  {task_format.short(notice['taskId'])}  {line}")
        if verbose:
            text = plain_lines(notice.get("text") or "").rstrip().strip("\n")
            echo("".join(f"    {line}\n" for line in text.splitlines()), nl=False)


def _parts(notice: Any, state: str, *, whole: bool) -> list[str]:
    """How the run ended and what came of it; of any other notice, its kind and the line that matters.
    `whole`: the whole text follows."""
    task, kind = notice["task"], notice.get("kind", "ending")
    title = task_format.title(task) if task else ""
    line = _telling_line(plain_lines(notice.get("text") or ""))
    if kind == "ending":
        said = task_format.doing(task) or ("" if whole else line[:WIDTH])
        return [task_format.paint(task_format.status(task), task) + state, title, said]
    count = notice.get("events", 1)
    late = f"({task_format.span(notice['late'])} late)" if notice.get("late") else ""
    return [plain(kind) + state, title, line[:WIDTH], f"(the last of {count})" if count > 1 else "", late]


def _telling_line(text: str) -> str:
    """All lines in one, as the first alone may say only where the others are from; of a match with lines
    around it, the match."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    if all(line.startswith(("  ", "> ")) for line in lines):
        lines = [line for line in lines if line.startswith("> ")] or lines
        return lines[0][2:].strip()
    return "  ".join(line.strip() for line in lines)
