"""What a turn is made of: what the program is given, what is heard of it, and how its ending is judged."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Completed, Failed, Handle, Meantime, Thread
from meantime.kernel.budgets import Budget
from meantime.kernel.fork_context import COPIED
from outcomes import completed

from .conftest import QUICK, Program, ended, lives, one, shown

pytestmark = pytest.mark.anyio


async def test_a_turn_is_heard_line_by_line(thread: Thread, program: Program):
    handle = await thread.start(one({"call": "Bash"}, {"call": "Read"}, {"say": "Done."}))
    task = await ended(handle, thread)
    assert task.outcome.result == "Done."
    assert shown(await thread.lines(handle.id))[1:] == [
        "assistant call: Bash",
        "tool result: Bash",
        "assistant call: Read",
        "tool result: Read",
        "assistant text: Done.",
    ]
    assert task.progress.tool_calls == {"Bash": 1, "Read": 1}
    assert (task.progress.turns, task.progress.tokens, task.progress.cost) == (3, 100, 0.25)


async def test_the_prompt_goes_to_its_stdin_as_it_is(thread: Thread, program: Program):
    """Quotes, line breaks, any script, and more than a command line holds."""
    prompt = 'He said: "it\'s $HOME `ls`"\n\n\t\\n --resume 日本語 🦆\n' + "long " * 100_000
    task = await ended(await thread.start(Agent("one", prompt)), thread)
    assert isinstance(task.outcome, Completed)
    assert program.given[0]["prompt"] == prompt
    assert not any("He said" in word for word in program.given[0]["arguments"])


async def test_its_environment_is_not_ours(ledger: Path, program: Program, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET", "of ours")
    monkeypatch.setenv("GIVEN", "by name")
    settings = program.settings(inherit=("GIVEN",), env={"ADDED": "by us"})
    async with Meantime.open(ledger, settings=QUICK, agents={"one": settings}) as mt:
        handle = await mt.thread("a").start(one({"say": "Done."}))
        await ended(handle, mt.thread("a"))
    seen = program.given[0]["environment"]
    known = {"PATH", "HOME", "LANG", "TERM", "GIVEN", "ADDED", "MEANTIME_TASK", "MEANTIME_THREAD"}
    assert set(seen) - known <= {"MEANTIME_COMMAND", "LC_CTYPE"}  # the mark of its supervisor; Python's own
    assert (seen["GIVEN"], seen["ADDED"], seen["MEANTIME_TASK"]) == ("by name", "by us", handle.id)
    kept = b"".join(path.read_bytes() for path in ledger.parent.rglob("work.db*") if path.is_file())
    assert b"by us" not in kept


async def test_it_goes_on_in_its_session(thread: Thread, program: Program):
    handle = await thread.start(Agent("one", "first"))
    await ended(handle, thread)
    await thread.resume(handle.id, "second")
    task = await ended(handle, thread)
    assert task.outcome.result == "heard 1: second"
    first, second = (given["arguments"] for given in program.given)
    assert first[-2:] == ["--session-id", task.session]
    assert second[-2:] == ["--resume", task.session]


async def test_a_fork_has_the_history_and_leaves_its_source_alone(thread: Thread, program: Program):
    source = await thread.start(Agent("one", "first"))
    await ended(source, thread)
    fork = await ended(await thread.fork(source.id, "second"), thread)
    assert fork.outcome.result == f"heard 1: {COPIED}\n\nsecond"
    await thread.resume(source.id, "third")
    assert (await ended(source, thread)).outcome.result == "heard 1: third"
    assert fork.session != (await source.get()).session


async def test_what_is_sent_to_a_running_one_is_its_next_turn(thread: Thread, program: Program):
    handle = await thread.start(one({"gate": "gate"}, {"say": "Done."}))
    await program.waits()
    assert await thread.send(handle.id, "And then?") == "queued"
    program.open_gate()
    await until_async(lambda: has_ended_again(handle), "its second turn has ended", handle.get)
    assert completed(await handle.get()).result == "heard 1: And then?"


async def has_ended_again(handle: Handle) -> bool:
    task = await handle.get()
    return task.run.number > 1 and task.ended


async def test_four_at_once(thread: Thread, program: Program):
    handles = [await thread.start(one({"gate": "gate"}, {"say": f"I am {n}."})) for n in range(4)]
    await program.waits(count=4)
    program.open_gate()
    tasks = [await ended(handle, thread) for handle in handles]
    assert [task.outcome.result for task in tasks] == [f"I am {n}." for n in range(4)]
    assert len({task.session for task in tasks}) == 4


# -- anything may come


ODD = [
    {"raw": "not JSON at all\n"},
    {"raw": "\n\n\r\n"},
    {"raw": '{"type": "of tomorrow", "message": 7}\n{"type": ["odd"]}\n[1, 2]\nnull\n"text"\n'},
    {"raw": '{"type": "assistant", "message": {"content": [{"type": "text"}, 5, null]}}\n'},
    {"raw": '{"type": "assistant", "message": "text"}\n{"type": "user"}\n{"type": "result' + "\n"},
    {"raw": "[" * 5_000 + "\n"},
    {"raw": "\udcff\udcfe\0\n"},
    {"raw": "x", "times": 40 << 20},  # a line that is longer than any event
    {"raw": "\n"},
]


async def test_odd_lines_are_nothing_to_it(thread: Thread):
    handle = await thread.start(one(*ODD, {"call": "Bash", "answer": 3 << 20}, {"say": "Done."}))
    task = await ended(handle, thread)
    assert task.outcome.result == "Done."
    assert shown(await thread.lines(handle.id))[-3:] == [
        "assistant call: Bash",
        "tool result: Bash",
        "assistant text: Done.",
    ]


# -- endings


async def failure(thread: Thread, *steps: dict[str, object]) -> Failed:
    outcome = (await ended(await thread.start(one(*steps)), thread)).outcome
    assert isinstance(outcome, Failed), outcome
    return outcome


async def test_an_error_is_told_in_its_words(thread: Thread):
    failed = await failure(thread, {"say": "I try."}, {"error": "There is no model nope.", "status": 404})
    assert (failed.message, failed.code) == ("There is no model nope.", "http_404")
    assert failed.partial == "I try."


async def test_an_exit_code_without_a_word_is_a_failure(thread: Thread):
    failed = await failure(thread, {"say": "I try."}, {"exit": 3, "stderr": "\x1b[91mno credentials\x1b[0m"})
    assert "exit code 3" in failed.message
    assert "no credentials" in failed.message
    assert "\x1b" not in failed.message
    assert failed.exit_code == 3


async def test_an_exit_that_looks_well_is_not_an_ending(thread: Thread):
    failed = await failure(thread, {"say": "I try."}, {"exit": 0})
    assert "did not say that its turn was over" in failed.message


async def test_an_agent_that_is_killed_has_failed(thread: Thread):
    failed = await failure(thread, {"say": "I try."}, {"signal": signal.SIGKILL})
    assert "SIGKILL" in failed.message
    assert failed.signal == signal.SIGKILL
    assert failed.partial == "I try."


async def test_its_supervisor_is_killed_with_it(thread: Thread, program: Program):
    """Nobody saw how it ended: so it is lost, and nothing of it runs on."""
    handle = await thread.start(one({"child": 1}, {"gate": "gate"}))
    await program.waits()
    pid = program.given[0]["pid"]
    shim = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(shim, signal.SIGKILL)
    task = await ended(handle, thread)
    assert str(task.status) == "lost"
    assert not lives(pid)
    assert not lives(program.noted("pids")[0])


async def test_a_provider_that_is_busy_is_waited_out(thread: Thread, program: Program):
    busy = {"once": "busy", "error": "API Error: 429 rate_limit_error, retry after 0.2 s", "status": 429}
    task = await ended(await thread.start(one(busy, {"say": "Done."})), thread)
    assert task.outcome.result == "Done."
    assert len(program.given) == 2
    assert "--resume" in program.given[1]["arguments"]


async def test_a_session_that_its_program_has_lost(thread: Thread, program: Program):
    handle = await thread.start(Agent("one", "first"))
    session = (await ended(handle, thread)).session
    (program.folder / f"session-{session}").unlink()
    await thread.resume(handle.id, "second")
    task = await ended(handle, thread)
    assert task.outcome.code == "session_gone"


async def test_a_turn_without_tools_is_the_last(ledger: Path, program: Program):
    settings = program.settings(last_turn=LIMIT, budget=Budget(tool_calls=2))
    async with Meantime.open(ledger, settings=QUICK, agents={"one": settings}) as mt:
        thread = mt.thread("a")
        handle = await thread.start(one({"call": "Bash"}, {"call": "Read"}, {"gate": "never"}))
        task = await ended(handle, thread)
    assert task.outcome.code == "budget_spent"
    arguments = program.given[-1]["arguments"]
    assert arguments[arguments.index("--tools") + 1] == ""
    assert task.outcome.final_message.startswith("heard 1: The budget of tool calls is spent.")
