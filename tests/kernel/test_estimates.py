"""Usual durations: by the narrowest description of a task that was seen often enough."""

from __future__ import annotations

from typing import Any

from meantime.kernel.estimates import MAX_ARGUMENTS, MOST, Estimates, Usual, alike, command_head
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task, Work

from .make import make_task

REVIEW = Work("agent", "review", {"prompt": "look"})


def ended(seconds: float, work: Work = REVIEW, **fields: Any) -> Task:
    return make_task(Status.COMPLETED, work=work, run=Run(duration=seconds), **fields)


def learned(*tasks: Task) -> Estimates:
    estimates = Estimates()
    for task in tasks:
        estimates.learn_from(task)
    return estimates


def test_a_title_that_was_seen_twice_says_more_than_its_agent():
    known = learned(
        ended(100, description="Review auth"),
        ended(120, description="Review auth"),
        ended(10),
        ended(12),
        ended(14),
    )
    assert known.usual(make_task(work=REVIEW, description="Review auth")) == Usual(110, 2)
    assert known.usual(make_task(work=REVIEW, description="Review docs")) == Usual(14, 5)
    assert known.usual(make_task(work=Work("agent", "release"))) is None


def test_nobody_knows_how_long_a_watch_takes():
    watch = Work("watch", "port 80")
    known = learned(ended(1, watch, description="port"), ended(2, watch, meta={"tool": "t", "like": "x"}))
    assert known.usual(make_task(work=watch, description="port")) is None
    assert len(known) == 0


def test_commands_are_alike_by_their_head_and_not_all_together():
    known = learned(
        ended(30, Work("shell", "", {"command": ["npm", "install", "a"]})),
        ended(50, Work("shell", "", {"command": "cd app && npm install b"})),
    )
    assert known.usual(make_task(work=Work("shell", "", {"command": "npm install c"}))) == Usual(40, 2)
    assert known.usual(make_task(work=Work("shell", "", {"command": "make"}))) is None


def test_only_completed_runs_count():
    assert len(learned(make_task(Status.FAILED, work=REVIEW, run=Run(duration=1.0)))) == 0
    assert len(learned(make_task(Status.RUNNING, work=REVIEW))) == 0


def test_a_ratio_says_how_much_slower_it_is():
    assert Usual(20, 3).ratio(60) == 3.0
    assert Usual(0, 3).ratio(60) is None


def test_a_loop_of_the_shell_says_nothing_about_another_loop():
    """Their heads are alike; a script of an interpreter is a head of its own."""

    def shell(command: str | list[str]) -> Work:
        return Work("shell", str(command), {"command": command})

    loops = [ended(seconds, shell(f"for n in $(seq {seconds}); do sleep 1; done")) for seconds in (5, 6)]
    texts = [ended(seconds, shell(["sh", "-c", f"sleep {seconds}"])) for seconds in (5, 6)]
    known = learned(*loops, *texts, ended(8, shell("python train.py")), ended(9, shell("python train.py")))
    assert known.usual(make_task(work=shell("for file in *; do gzip $file; done"))) is None
    assert known.usual(make_task(work=shell(["sh", "-c", "make"]))) is None
    assert known.usual(make_task(work=shell("python train.py --fast"))) == Usual(8.5, 2)


def test_calls_with_the_same_command_head_or_the_same_arguments_are_alike():
    assert alike({"command": "npm install x"}) == alike({"command": "npm install y"}) == "npm install"
    assert alike({"a": 1, "b": 2}) == alike({"b": 2, "a": 1})
    assert alike({"a": 1}) != alike({"a": 2})
    long = alike({"text": "x" * 1_000})
    assert long is not None
    assert len(long) == 32, "a digest, since keys are kept"


def test_calls_whose_arguments_are_too_big_or_not_json_are_like_no_other():
    assert alike({"text": "x" * (MAX_ARGUMENTS + 1)}) is None
    assert alike({"numbers": list(range(MAX_ARGUMENTS))}) is None
    assert alike({"thing": object()}) is None


def test_a_command_without_words_has_no_head():
    assert command_head("CI=1 ") == ""
    assert command_head("cd app && npm install x") == "npm install"


def test_descriptions_that_were_not_seen_for_longest_are_forgotten():
    estimates = Estimates()
    for number in range(MOST + 1):
        estimates.learn(("call", str(number)), 1.0)
    assert len(estimates) == MOST
    assert estimates.of(("call", "0")) is None
