"""`meantime chat`: a conversation in the terminal, with an agent that never waits."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meantime.app.components import joined
from meantime.app.connected_catalog import ConnectedWorks
from meantime.app.link_ends import client
from meantime.conversation.transcript import Transcripts
from meantime.daemon.home import BadHome, home
from meantime.kernel.errors import Disconnected, MeantimeError
from meantime.kernel.ids import check_id
from meantime.ports.tasks import Tasks
from meantime.runners.shell.shell_work import Shell
from meantime.surfaces.caller.caller_thread import OURS
from meantime.surfaces.terminal.errors import FAILED, NO_DAEMON, USAGE, CliError
from meantime.thread import Thread
from meantime.toolset.work_catalog import GivenWorks, Works

if TYPE_CHECKING:
    from meantime.surfaces.chat.chat_loop import Chat, ChatAgent

THREAD = "chat"
PATIENCE = 30.0  # seconds that a lost daemon is waited for


@click.command("chat")
@click.option(
    "--model", metavar="PROVIDER:NAME", help="Any model of Pydantic AI; by default a script answers."
)
@click.option("--base-url", metavar="URL", help="With --model: an endpoint that speaks the OpenAI protocol.")
@click.option("--thread", metavar="ID", help=f"The conversation; by default ${OURS}, or {THREAD}.")
@click.option("--embedded", is_flag=True, help="Without the daemon: this process owns a ledger of its own.")
@click.option("--ledger", type=click.Path(dir_okay=False), metavar="FILE", help="With --embedded: which one.")
def command(
    model: str | None, base_url: str | None, thread: str | None, embedded: bool, ledger: str | None
) -> int:
    """Talk to an agent that hands off slow work and goes on talking.

    You are told of each ending once, in order. Tasks keep running when you leave; the conversation is kept,
    and continues when you are back. A key in the environment is used with --model only.
    """
    if base_url is not None and model is None:
        raise CliError("--base-url says where a model is, and there is none.", "Give --model too.", USAGE)
    if ledger is not None and not embedded:
        raise CliError("--ledger is for --embedded; the daemon has its own.", "Give --embedded too.", USAGE)
    _check_terminal()
    _check_extras(model)
    try:
        return asyncio.run(_chat(model, base_url, thread or os.environ.get(OURS) or THREAD, embedded, ledger))
    except Disconnected as problem:
        raise CliError(problem.message, problem.hint, NO_DAEMON) from None
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "From a script, use `meantime run`; to see it work, `meantime demo --headless`."
        raise CliError("`chat` needs a terminal to talk in.", hint, USAGE)


def _check_extras(model: str | None) -> None:
    wanted = {"prompt_toolkit": "server", **({"pydantic_ai": "model"} if model is not None else {})}
    for module, extra in wanted.items():
        if find_spec(module) is None:
            what = "`chat --model`" if extra == "model" else "`chat`"
            extras = ",".join(wanted.values())
            raise CliError(
                f"{what} needs {module}, which is not installed.", f"pip install 'meantime[{extras}]'", FAILED
            )


async def _chat(
    model: str | None, base_url: str | None, thread: str, embedded: bool, ledger: str | None
) -> int:
    from meantime.surfaces.chat.chat_loop import Chat

    async with _embedded(ledger) if embedded else _connected() as (tasks, works, where):
        own = Thread(tasks, check_id(thread, "thread"), Transcripts(tasks))
        chat = Chat(tasks, own, works, where)
        return await chat.run(await _agent(chat, model, base_url))


@asynccontextmanager
async def _connected() -> AsyncGenerator[tuple[Tasks, Works, str]]:
    tasks = client(None, PATIENCE, start=os.environ.get("MEANTIME_NO_START", "") in ("", "0"))
    await tasks.open()
    try:
        yield tasks, ConnectedWorks(tasks), "with the daemon"
    finally:
        await tasks.close()


@asynccontextmanager
async def _embedded(ledger: str | None) -> AsyncGenerator[tuple[Tasks, Works, str]]:
    path = Path(ledger) if ledger is not None else _own_ledger()
    tasks = joined(path, None).runtime
    await tasks.open()
    try:
        yield tasks, GivenWorks(tasks, None, commands=Shell), f"ledger {path}"
    finally:
        await tasks.close()


def _own_ledger() -> Path:
    try:
        own = home()
        own.make()
    except BadHome as problem:
        raise CliError(problem.message, problem.hint) from None
    return own.folder / "chat.db"


async def _agent(chat: Chat, model: str | None, base_url: str | None) -> ChatAgent:
    if model is None:
        from meantime.surfaces.chat.scripted_agent import Scripted

        return Scripted(chat.hands, chat.screen.put)
    click.echo("Loading Pydantic AI …")  # it takes its time
    from meantime.surfaces.chat.chat_tools import ChatTools
    from meantime.surfaces.chat.model_agent import ModelAgent, find_model

    try:
        found = find_model(model, base_url)
    except ImportError as missing:  # a provider's own library; Pydantic AI says which
        raise CliError(f"{model} cannot be used: {missing}") from None
    tools = ChatTools(chat.hands, chat.screen.put)
    return ModelAgent(found, tools, await tools.offered(), chat.screen.put)
