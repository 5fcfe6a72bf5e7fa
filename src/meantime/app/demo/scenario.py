"""The demo from its first line to its last: hands off, listens, talks, counts, leaves nothing behind."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from meantime.app.meantime import Meantime
from meantime.kernel.errors import MeantimeError
from meantime.kernel.ids import display
from meantime.runtime.settings import Settings
from meantime.surfaces.terminal.errors import CliError

from . import demo_texts
from .demo_agent import ScriptedAgent
from .demo_screen import YOU, DemoScreen, open_screen
from .demo_work import pieces
from .final_report import DemoReport, as_json, take_account
from .layout import summary
from .replies import Answers
from .signals import Signals, keep_output
from .subagent import Subagent

CONVERSATION = "demo"
SUBAGENT = "demo.subagent"


class Wishes(NamedTuple):
    headless: bool = False
    json: bool = False
    keep: bool = False
    slow: int = 8  # seconds that the slow piece takes


def play(wishes: Wishes) -> int:
    """Returns the exit code: 0 only where everything that was handed off was told once, in order."""
    with Signals() as signals, keep_output():
        try:
            with _folder(wishes.keep) as folder:
                return asyncio.run(_play(folder, wishes, signals))
        except asyncio.CancelledError:
            return 128 + signals.heard
        except MeantimeError as problem:
            raise CliError(problem.message, problem.hint) from problem


async def _play(folder: Path, wishes: Wishes, signals: Signals) -> int:
    began = time.monotonic()
    signals.cancel_me()
    settings = Settings(on_close="stop")
    with open_screen(headless=wishes.headless, silent=wishes.json) as screen:
        try:
            async with Meantime.open(folder / "work.db", settings=settings) as mt, mt.serve() as door:
                show(screen, demo_texts.banner(door.url, str(folder), wishes.keep))
                agent = ScriptedAgent(mt.thread(CONVERSATION), Answers(mt), screen)
                subagent = Subagent(mt.thread(SUBAGENT))
                await _hand_off(agent, subagent, folder, wishes.slow, screen)
                await _until_told(agent, screen)
                account = await take_account(mt, agent, subagent, door.url, time.monotonic() - began)
        except asyncio.CancelledError:
            with suppress(OSError):  # the terminal may be what is gone
                screen.line("Stopped.")
            raise
        _sum_up(account, screen)
        if wishes.keep:
            show(screen, ["", f"Kept: {folder} (the ledger is work.db)"])
    if wishes.json:
        sys.stdout.write(as_json(account, str(folder) if wishes.keep else None) + "\n")
    return 0 if account.sound else 1


async def _hand_off(
    agent: ScriptedAgent, subagent: Subagent, folder: Path, slow: int, screen: DemoScreen
) -> None:
    screen.line(f"{YOU}{demo_texts.ASK}")
    await agent.hand_off(pieces(folder, subagent, slow), timeout=slow + 600)
    screen.agent(demo_texts.HANDED_OFF)
    screen.line()
    screen.table(f"{display(task.id)}  {task.title}" for task in agent.tasks)
    screen.line()
    screen.invite()


async def _until_told(agent: ScriptedAgent, screen: DemoScreen) -> None:
    """Listens and talks side by side; what goes wrong in either is raised here."""
    listening = asyncio.create_task(agent.listen())
    pending = {listening, asyncio.create_task(agent.talk())}
    try:
        while not listening.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        await screen.finished()
    finally:
        for each in pending:
            each.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


def _sum_up(account: DemoReport, screen: DemoScreen) -> None:
    screen.line()
    screen.table(summary(account.tasks, account.heard))
    screen.line()
    screen.line(f"{account.tally}. {account.seconds:.1f} s in all.")
    if account.subagent_done:
        screen.line(f"The subagent's own: {account.subtally}.")
    screen.line()
    show(screen, demo_texts.PLUG_IN.splitlines())


def show(screen: DemoScreen, rows: Iterable[str]) -> None:
    for row in rows:
        screen.line(row, whole=True)


@contextmanager
def _folder(keep: bool) -> Generator[Path, None, None]:
    if keep:
        yield Path(tempfile.mkdtemp(prefix="meantime-demo-"))
        return
    with tempfile.TemporaryDirectory(prefix="meantime-demo-") as folder:
        yield Path(folder)
