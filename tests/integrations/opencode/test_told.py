"""OpenCode sessions are told exactly once, in order, and woken: counted at the model (P5, grade B)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until, until_async

from integrations.agents.installed import OPENCODE, needs
from integrations.agents.model import Asked, script
from meantime import Call, Meantime, OpenCodeHost
from meantime.integrations.opencode.wire.api_client import ApiClient

from .serving import ROOT, Running
from .telling import is_told

pytestmark = [
    pytest.mark.agents,
    needs(OPENCODE),
    pytest.mark.xdist_group("opencode-told"),
    pytest.mark.anyio,
]
OWNER = "tests.integrations.opencode.telling"
PLACES = [
    "note before",
    "note during",
    "note after",
    "prompt before",
    "prompt during",
    "prompt after",
    "told",
]


@pytest.fixture
async def mt(tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt


def work(number: int) -> str:
    return f"result {number}"


async def finished(mt: Meantime, thread: str, count: int = 1) -> list[str]:
    """The notices of some tasks that have ended, in the order of their endings."""
    handles = [await mt.thread(thread).start(Call(work, number)) for number in range(count)]
    await mt.thread(thread).wait(*handles)
    return [notice.id for notice in await mt.notices() if notice.thread == thread]


async def all_told(mt: Meantime) -> None:
    await until_async(lambda: is_told(mt), "everything is told", mt.notices)


@pytest.mark.behaviour("N5")
async def test_an_idle_session_is_woken_and_told_with_one_turn(server: Running, mt: Meantime):
    """Four endings at once are one turn, which asks the model once."""
    session = server.session("idle-one " + script({"text": "Hello."}))
    ids = await finished(mt, session, 4)
    mt.attach(session, OpenCodeHost(server.url, session))
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("idle-one") == ids
    assert len(server.asked("idle-one")) == 2
    assert "result 3" in server.asked("idle-one")[-1].text
    again = await finished(mt, session)
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("idle-one") == [*ids, *again]
    assert len(server.asked("idle-one")) == 3


@pytest.mark.behaviour("N6")
async def test_a_session_that_uses_a_tool_is_told_at_its_next_step(
    server: Running, mt: Meantime, tmp_path: Path
):
    gate = tmp_path / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.02; done"
    step = {"tool": "bash", "arguments": {"command": wait, "description": "wait"}}
    session = server.session()
    server.prompt(session, "busy-tool " + script(step, {"text": "Done."}))
    await until_async(lambda: server.asked("busy-tool"), "the model is asked")
    ids = await finished(mt, session, 2)
    mt.attach(session, OpenCodeHost(server.url, session))
    await server.until_messages(session, lambda found: len(found) == 4)  # both are in it, while the tool runs
    gate.touch()
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("busy-tool") == ids
    assert len(server.asked("busy-tool")) == 2


@pytest.mark.behaviour("N6")
async def test_a_session_in_its_last_step_takes_one_more(server: Running, mt: Meantime, tmp_path: Path):
    gate = tmp_path / "gate"
    session = server.session()
    server.prompt(session, "busy-model " + script({"text": "Done.", "wait_file": str(gate)}))
    await until_async(lambda: server.asked("busy-model"), "the model is asked")
    ids = await finished(mt, session)
    mt.attach(session, OpenCodeHost(server.url, session))
    await server.until_messages(session, lambda found: len(found) == 3)
    gate.touch()
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("busy-model") == ids
    assert len(server.asked("busy-model")) == 2


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("place", PLACES)
def test_told_once_by_an_owner_that_is_killed(server: Running, tmp_path: Path, place: str):
    """Killed at this place of the delivery, and started again."""
    word = f"killed-{place.replace(' ', '-')}"
    session = server.session(f"{word} " + script({"text": "Hello."}))
    killed = _owner(place, tmp_path, server.url, session)
    assert killed.returncode == -signal.SIGKILL, killed
    done = _owner("", tmp_path, server.url, session)
    assert done.returncode == 0, done
    until(lambda: server.idle(session), "the session is idle")
    ids = done.stdout.split()
    assert len(ids) == 4
    assert server.told(word) == ids
    texts = [part.get("text", "") for message in server.messages(session) for part in message["parts"]]
    assert [sum(f'id="{id}"' in text for text in texts) for id in ids] == [1] * 4


def _owner(place: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", OWNER, place, str(folder / "work.db"), *more]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=2 * LIMIT, check=False)


@pytest.mark.behaviour("P5")
async def test_told_once_over_a_server_that_is_killed_in_between(
    server: Running, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """After three of four were written; the session itself is on its disk."""
    session = server.session("server-dies " + script({"text": "Hello."}))
    ids = await finished(mt, session, 4)
    prompt, killed = ApiClient.prompt, []

    async def dies_first(self: ApiClient, *arguments: Any) -> None:
        if not killed:
            killed.append(True)
            server.kill()
            server.start()
        await prompt(self, *arguments)

    monkeypatch.setattr(ApiClient, "prompt", dies_first)
    mt.attach(session, OpenCodeHost(server.url, session))
    await all_told(mt)
    await server.until_idle(session)
    assert killed
    assert server.told("server-dies") == ids
    assert len(server.asked("server-dies")) == 2


@pytest.mark.behaviour("P5")
async def test_a_server_that_dies_before_it_asked_the_model_is_asked_again(
    server: Running, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """It has the notices, and would never have taken a turn."""
    session = server.session("unwoken " + script({"text": "Hello."}))
    ids = await finished(mt, session, 2)
    prompt, killed = ApiClient.prompt, []

    async def dies_with_it(self: ApiClient, id: str, directory: str, body: dict[str, object]) -> None:
        if killed:
            await prompt(self, id, directory, body)
        else:
            await self.note(id, directory, body)
            killed.append(True)
            server.kill()
            server.start()

    monkeypatch.setattr(ApiClient, "prompt", dies_with_it)
    mt.attach(session, OpenCodeHost(server.url, session))
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("unwoken") == ids
    assert len(server.asked("unwoken")) == 2


@pytest.mark.behaviour("P5")
async def test_a_server_that_dies_while_the_model_is_asked_tells_once(server: Running, mt: Meantime):
    """The model was asked and never answered: it is asked again, with the notice once."""
    session = server.session("silenced " + script({"text": "Hello."}))
    ids, killed = await finished(mt, session, 2), []

    def dies(asked: Asked) -> None:
        if "silenced" in asked.text and not killed:
            killed.append(True)
            server.kill()
            server.start()

    server.model.before_answer = dies
    mt.attach(session, OpenCodeHost(server.url, session))
    await all_told(mt)
    await server.until_idle(session)
    assert killed
    assert server.told("silenced") == ids


@pytest.mark.behaviour("N10")
async def test_notices_wait_for_a_server_that_is_away(server: Running, mt: Meantime):
    session = server.session("away " + script({"text": "Hello."}))
    server.kill()
    ids = await finished(mt, session, 2)
    mt.attach(session, OpenCodeHost(server.url, session))
    assert len(await mt.notices()) == 2
    server.start()
    await all_told(mt)
    await server.until_idle(session)
    assert server.told("away") == ids


async def test_a_session_that_is_gone_is_a_failed_delivery(server: Running, mt: Meantime):
    session = server.session()
    server.http.delete(f"/session/{session}")
    ids = await finished(mt, session)
    host = OpenCodeHost(server.url, session)
    with pytest.raises(Exception, match=f"no session {session}"):
        await host.has(session, ids[0])


def test_what_is_no_url_or_no_session_is_refused():
    for url, session in (("localhost:4096", "ses_1"), ("http://localhost:4096", "t_1")):
        with pytest.raises(ValueError, match=r"is no"):
            OpenCodeHost(url, session)
