"""P4: a turn in OpenCode goes on when its owner is killed, and is followed to its end by the next. A server
that is killed takes its turn along, which is told as lost; its sessions can be gone on with."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT, until_async

from integrations.agents.installed import OPENCODE, needs
from integrations.agents.model import Model, script
from meantime import Agent, Cancelled, Failed, Lost, Meantime
from meantime.app.pending_open import Opening
from meantime.integrations.opencode.server import AccountRecord
from meantime.integrations.opencode.wire.api_client import ApiClient
from meantime.ports.session import AgentSettings

from .serving import ROOT, Place, Running

pytestmark = [
    needs(OPENCODE),
    pytest.mark.xdist_group("opencode-kills"),
    pytest.mark.anyio,
    pytest.mark.agents,
]
OWNER = "tests.integrations.opencode.working"


class Workplace(Place):
    """Where a server of Meantime's own is started."""

    def __init__(self, folder: Path, model: Model, **config: Any) -> None:
        super().__init__(folder, model, **config)
        self.ledger = folder / "work.db"
        self.settings = AgentSettings(
            runner="opencode", command=(str(OPENCODE),), env=self.environ, cwd=str(self.project)
        )

    def opened(self) -> Opening:
        return Meantime.open(self.ledger, agents={"worker": self.settings})

    def record(self) -> AccountRecord | None:
        found = list(Path(f"{self.ledger}.agents").glob("*/*/server.json"))
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in found)
        return msgspec.json.decode(found[0].read_bytes(), type=AccountRecord) if found else None

    @contextmanager
    def owner(self, prompt: str, place: str = "") -> Iterator[subprocess.Popen[str]]:
        settings = msgspec.json.encode(self.settings).decode()
        words = [sys.executable, "-m", OWNER, place, str(self.ledger), settings, prompt]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
            try:
                yield owner
            finally:
                owner.kill()


@pytest.fixture
def work(tmp_path: Path, model: Model) -> Iterator[Workplace]:
    place = Workplace(tmp_path, model)
    yield place
    left = place.record()
    if left is not None and left.process.is_alive:
        os.killpg(left.process.pid, signal.SIGKILL)


def bash(command: str) -> dict[str, Any]:
    return {"tool": "bash", "arguments": {"command": command, "description": "a test"}}


def waits_for(gate: Path) -> str:
    return f"until [ -e {gate} ]; do sleep 0.02; done"


async def ended(mt: Meantime) -> Any:
    await until_async(lambda: has_ended(mt), "the task has ended", mt.list)
    return (await mt.list())[0]


async def has_ended(mt: Meantime) -> bool:
    return (await mt.list())[0].ended


async def kinds(mt: Meantime, task: str) -> list[str]:
    return [line.kind.value for line in await mt.lines(task)]


@pytest.mark.behaviour("P4")
async def test_a_turn_outlives_its_owner(work: Workplace):
    gate = work.folder / "gate"
    with work.owner("outlives " + script(bash(waits_for(gate)), {"text": "Done."})) as owner:
        await until_async(lambda: work.asked("outlives"), "the model is asked")
        owner.kill()
    before = work.record()
    assert before
    assert before.process.is_alive
    async with work.opened() as mt:
        task = (await mt.list())[0]

        async def lines_with_call() -> list[str]:
            lines = await kinds(mt, task.id)
            return lines if "call" in lines else []

        # What was done while nobody listened comes first.
        lines = await until_async(lines_with_call, "its call is heard")
        assert lines == ["text", "call"]
        gate.touch()
        task = await ended(mt)
        after = work.record()
        lines = await kinds(mt, task.id)
    assert task.outcome.result == "Done."
    assert after == before
    assert len(work.asked("outlives")) == 2
    assert task.progress.tool_calls == {"bash": 1}
    assert lines == ["text", "call", "result", "text"]
    assert not before.process.is_alive  # nothing was left to do for it
    assert work.record() is None


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("place", ["prompt before", "prompt during", "prompt after"])
async def test_a_prompt_is_given_once(work: Workplace, server: Running, place: str):
    """Whether or not the server got it before the owner of the ledger was killed."""
    word = f"once-{place}".replace(" ", "-")
    work.settings = AgentSettings(runner="opencode", url=server.url, cwd=str(server.project))
    with work.owner(f"{word} " + script({"text": "Done."}), place) as owner:
        assert owner.wait(LIMIT) == -signal.SIGKILL
    async with work.opened() as mt:
        task = await ended(mt)
        assert task.outcome.result == "Done."
    assert len(work.asked(word)) == 1


@pytest.mark.behaviour("L28")
async def test_a_permission_is_answered_after_a_restart(work: Workplace):
    work.settings = msgspec.structs.replace(work.settings, options={"permission": {"bash": "ask"}})
    with work.owner("permits " + script(bash("echo forty-two"), {"text": "Done."})) as owner:
        assert owner.stdout
        id = owner.stdout.readline().strip()
        await until_async(lambda: "permission" in _ledger(work), "the question is on disk")
        owner.kill()
    async with work.opened() as mt:
        task = await mt.get(id)
        assert task.question.subject == "bash"
        await mt.answer(id, "allow")
        assert (await ended(mt)).outcome.result == "Done."
    assert len(work.asked("permits")) == 2
    assert "forty-two" in work.asked("permits")[-1].text


def _ledger(work: Workplace) -> str:
    """Whether the question is on disk: the ledger itself belongs to the other process."""
    with closing(sqlite3.connect(f"file:{work.ledger}?mode=ro", uri=True)) as ledger:
        return str(ledger.execute("select * from tasks").fetchall())


async def test_a_server_that_is_killed_loses_the_turn_and_not_the_session(work: Workplace):
    pid = work.folder / "pid"
    async with work.opened() as mt:
        thread = mt.thread("conv-1")
        prompt = "loses " + script(bash(f"echo $$ > {pid}; exec sleep 1000"), {"text": "Never."})
        handle = await thread.start(Agent("worker", prompt))
        await until_async(lambda: pid.exists() and pid.read_text().strip(), "its command runs")
        record = work.record()
        assert record
        os.kill(record.process.pid, signal.SIGKILL)
        task = await handle.wait()
        assert isinstance(task.outcome, Lost), task.outcome
        assert not Path(f"/proc/{pid.read_text().strip()}").exists()  # what it ran is gone with it
        again = await thread.resume(handle, script({"text": "Back."}))
        assert await again.result() == "Back."
    assert "loses" in work.asked("loses")[-1].text


async def test_a_server_that_is_killed_before_the_model_was_asked_is_asked_again(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
):
    killed = []
    prompt = ApiClient.prompt

    async def dies(self: ApiClient, id: str, directory: str, body: dict[str, Any]) -> None:
        if killed:
            await prompt(self, id, directory, body)
            return
        await self.note(id, directory, body)  # it has it, and begins nothing with it
        record = work.record()
        assert record
        os.kill(record.process.pid, signal.SIGKILL)
        killed.append(True)

    monkeypatch.setattr(ApiClient, "prompt", dies)
    async with work.opened() as mt:
        handle = await mt.thread("conv-1").start(Agent("worker", "unasked " + script({"text": "Done."})))
        assert await handle.result() == "Done."
    assert len(work.asked("unasked")) == 1


async def test_a_close_leaves_the_turn_to_the_next_owner(work: Workplace):
    gate = work.folder / "gate"
    async with work.opened() as mt:
        prompt = "left " + script(bash(waits_for(gate)), {"text": "Done."})
        await mt.thread("conv-1").start(Agent("worker", prompt))
        await until_async(lambda: work.asked("left"), "the model is asked")
    left = work.record()
    assert left
    assert left.process.is_alive
    async with work.opened() as mt:
        await mt.cancel((await mt.list())[0].id, wait=True)
        assert isinstance((await ended(mt)).outcome, Cancelled)
    assert not left.process.is_alive


async def test_a_server_that_does_not_start_is_a_failure_that_says_why(work: Workplace):
    program = work.folder / "broken"
    program.write_text("#!/bin/sh\necho out of luck >&2\nexit 3\n")
    program.chmod(0o700)
    work.settings = msgspec.structs.replace(work.settings, command=(str(program),))
    async with work.opened() as mt:
        handle = await mt.thread("conv-1").start(Agent("worker", "hello"))
        task = await handle.wait()
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "server_not_started"
    assert "out of luck" in task.outcome.message


async def test_a_program_that_is_not_there_is_refused_before_anything_is_recorded(work: Workplace):
    work.settings = msgspec.structs.replace(work.settings, command=("no-such-opencode",))
    async with work.opened() as mt:
        with pytest.raises(ValueError, match="no-such-opencode"):
            await mt.thread("conv-1").start(Agent("worker", "hello"))
        assert await mt.list() == []
