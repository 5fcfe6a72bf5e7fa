"""What an agent says in a turn, and how the turn ends. The agent is a scripted stand-in."""

from __future__ import annotations

import pytest
from tests.waiting import until_async

from meantime.kernel.lines import Kind
from meantime.kernel.model import Completed, Failed, Lost

from .conftest import Peer, ended, in_phase, runs, steps

pytestmark = pytest.mark.anyio


async def test_what_it_says_and_calls_is_kept_line_by_line(peer: Peer):
    turn = steps(
        {"think": "let me see"},
        {"say": "I look", "pieces": ["I ", "look"]},
        {"call": "search", "input": {"q": "x"}, "output": "found"},
        {"call": "write", "failed": True, "output": "read-only"},
        {"say": "done"},
    )
    async with peer.employed() as thread:
        handle = await thread.start(turn)
        task = await ended(thread, handle)
        lines = (await thread.lines(handle))[1:]
        text = (await handle.log.tail()).data.decode()
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "done"
    said = [(line.kind, line.tool or line.text) for line in lines]
    assert said == [
        (Kind.THOUGHT, "let me see"),
        (Kind.TEXT, "I look"),
        (Kind.CALL, "search"),
        (Kind.RESULT, "search"),
        (Kind.CALL, "write"),
        (Kind.RESULT, "write"),
        (Kind.TEXT, "done"),
    ]
    assert lines[2].arguments == {"q": "x"}
    assert (lines[3].text, lines[3].failed, lines[5].failed) == ("found", False, True)
    assert text.count("\nI look\n") == 1  # though it came in pieces, and then whole


async def test_plan_tokens_and_cost_are_progress(peer: Peer):
    turn = steps(
        {"plan": ["read", "write"]},
        {"cost": 0.25},
        {"wait": "go"},
        {"cost": 0.5, "tokens": 70},
        {"say": "ok"},
    )
    async with peer.employed() as thread:
        handle = await thread.start(turn)
        await in_phase(handle, "plan 1/2 write")
        peer.touch("go")
        progress = (await ended(thread, handle)).progress
    assert progress is not None
    assert progress.tokens == 70
    assert progress.cost == 0.5  # the agent says what the whole session cost, so far
    assert progress.turns == 1


@pytest.mark.parametrize(
    ("reason", "code"),
    [("refusal", "refusal"), ("max_tokens", "max_tokens"), ("max_turn_requests", "max_turns")],
)
async def test_a_turn_that_was_cut_has_failed_and_keeps_what_it_said(peer: Peer, reason: str, code: str):
    async with peer.employed() as thread:
        task = await ended(thread, await thread.start(steps({"say": "half of it"}, {"stop": reason})))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == code
    assert task.outcome.partial == "half of it"


async def test_an_error_of_the_model_is_the_tasks_own_with_its_real_text(peer: Peer):
    error = {"error": [-32603, "Internal error", {"details": "context is too long"}]}
    async with peer.employed() as thread:
        task = await ended(thread, await thread.start(steps(error)))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.message == "Internal error: context is too long"
    assert task.outcome.code == "model_error"


async def test_a_passing_trouble_of_the_provider_is_waited_out(peer: Peer):
    error = {"error": [-32603, "429 Too Many Requests, retry-after: 0.1"], "once": "refused"}
    async with peer.employed() as thread:
        task = await ended(thread, await thread.start(steps(error, {"say": "through"})))
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "through"
    assert peer.lines("requests").count("session/prompt") == 2
    assert len(peer.lines("starts")) == 1


@pytest.mark.behaviour("L26")
async def test_a_quota_that_is_used_up_ends_the_task(peer: Peer):
    error = {"error": [-32603, "Internal error", {"details": "429 insufficient_quota"}]}
    async with peer.employed() as thread:
        task = await ended(thread, await thread.start(steps(error)))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.message == "Internal error: 429 insufficient_quota"
    assert peer.lines("requests").count("session/prompt") == 1


async def test_updates_of_unknown_kinds_and_stray_lines_do_no_harm(peer: Peer):
    turn = steps({"unknown": "hologram"}, {"print": "Warning: {]"}, {"print": '"text"'}, {"say": "fine"})
    async with peer.employed("noisy") as thread:
        task = await ended(thread, await thread.start(turn))
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "fine"


async def test_a_megabyte_of_stderr_is_read_and_only_its_end_is_kept(peer: Peer):
    floods = [{"flood": 1 << 20}] * 3
    async with peer.employed() as thread:
        task = await ended(thread, await thread.start(steps(*floods, {"say": "still here"})))
        kept = sum(file.stat().st_size for file in peer.ledger.parent.rglob("*.stderr*"))
        before = sum(file.stat().st_size for file in peer.ledger.parent.rglob("*.before"))
    assert isinstance(task.outcome, Completed)
    assert 0 < kept + before <= 3 << 20


async def test_a_message_of_megabytes_is_taken_whole(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps({"big": 3 << 20}))
        await ended(thread, handle)
        assert await thread.result(handle) == "z" * (3 << 20)


async def test_an_agent_that_dies_leaves_its_task_lost_and_its_session_to_be_resumed(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps({"child": "children"}, {"say": "so far"}, {"die": 9}))
        task = await ended(thread, handle)
        assert isinstance(task.outcome, Lost)
        assert "SIGKILL" in task.outcome.reason
        assert task.outcome.partial == "so far"
        child = int(peer.lines("children")[0])
        await until_async(lambda: not runs(child), "what it had started is gone")
        await thread.resume(handle, "again")
        task = await ended(thread, handle)
        said = [line.text for line in await thread.lines(handle) if line.role == "assistant"]
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "echo again"
    assert said == ["so far", "echo again"]  # what was replayed is not said twice
    assert len(peer.lines("starts")) == 2
