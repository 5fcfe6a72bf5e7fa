"""Its process is killed in the middle of a turn: what was said and done is there, the next turn is valid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Meantime, Status

from .owner import agent_of
from .scripted import Script, until_waiting

pytestmark = [pytest.mark.anyio, pytest.mark.faults]
ROOT = Path(__file__).resolve().parents[3]
ID = "t_explore"


def killed(ledger: Path, what: str) -> None:
    command = [sys.executable, "-m", "tests.integrations.pydantic_ai.owner", str(ledger), what]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        for line in owner.stdout:
            if line == "now\n":
                owner.kill()
    assert owner.returncode == -9


async def resumed(ledger: Path, script: Script, prompt: str) -> str:
    async with Meantime.open(ledger, agents={"explore": agent_of(script)}) as mt:
        thread = mt.thread("t")
        await thread.wait(ID, timeout=LIMIT)
        assert (await thread.get(ID)).status is Status.LOST
        again = await thread.resume(ID, prompt)
        return str(await again.result())


@pytest.mark.core("the one agent that is killed")
@pytest.mark.behaviour("L27")
async def test_killed_in_a_tool_the_other_results_are_kept_and_it_is_not_called_again(tmp_path: Path):
    killed(tmp_path / "work.db", "tool")
    script = Script("I see")
    assert await resumed(tmp_path / "work.db", script, "go on") == "I see"
    assert script.asked[0].prompts == ["go", "go on"]
    quick, slow = script.asked[0].results
    assert quick == "quick is done"
    assert "interrupted" in slow.lower()
    assert len(script.asked) == 1


@pytest.mark.behaviour("L27")
async def test_killed_while_the_model_thinks_everything_before_is_kept(tmp_path: Path):
    killed(tmp_path / "work.db", "model")
    script = Script("I see")
    assert await resumed(tmp_path / "work.db", script, "go on") == "I see"
    assert script.asked[0].prompts == ["go", "go on"]
    assert script.asked[0].results == ["quick is done"]


@pytest.mark.behaviour("L17")
async def test_killed_before_it_was_heard_what_was_said_to_it_is_heard_once(tmp_path: Path):
    killed(tmp_path / "work.db", "steered")
    script = Script("I see", "yes")
    assert await resumed(tmp_path / "work.db", script, "go on") == "I see"
    assert script.asked[0].prompts == ["go", "and be quick", "go on"]
    async with Meantime.open(tmp_path / "work.db", agents={"explore": agent_of(script)}) as mt:
        await (await mt.thread("t").resume(ID, "more")).result()
    assert script.asked[1].prompts == ["go", "and be quick", "go on", "more"]


@pytest.mark.behaviour("L28")
@pytest.mark.parametrize(
    ("answer", "result"), [("allow", "deleted x"), ("reject: keep it", "keep it")], ids=["allowed", "refused"]
)
async def test_killed_while_it_asks_the_answer_reaches_the_call_that_waited(
    tmp_path: Path, answer: str, result: str
):
    killed(tmp_path / "work.db", "asks")
    script = Script("so be it")
    async with Meantime.open(tmp_path / "work.db", agents={"explore": agent_of(script)}) as mt:
        await until_waiting(mt, ID)
        await mt.answer(ID, answer)
        await mt.thread("t").wait(ID, timeout=LIMIT)
        assert await mt.thread("t").result(ID) == "so be it"
    assert len(script.asked) == 1, "the model is not asked to make the call again"
    assert script.asked[0].results == ["quick is done", result]


async def test_a_session_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path):
    killed(tmp_path / "work.db", "model")
    (file,) = (tmp_path / "work.db.agents").glob("PythonHost/*.messages")
    file.write_bytes(file.read_bytes() + b'add [{"parts":[{"content":"half')
    script = Script("I see", "fine")
    assert await resumed(tmp_path / "work.db", script, "go on") == "I see"
    async with Meantime.open(tmp_path / "work.db", agents={"explore": agent_of(script)}) as mt:
        assert await (await mt.thread("t").resume(ID, "more")).result() == "fine"
    assert script.asked[1].prompts == ["go", "go on", "more"]
