"""The family adapters finds each planted bug, and its judge sees what is wrong in a story."""

from __future__ import annotations

import pytest

from . import adapter_plants, adapters
from .judge import Fact

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("plant", "adapter", "kills", "says"),
    [
        ("ack_before_save", "agent_framework", 4, "never told"),
        ("save_without_id", "pydantic_ai", 8, "times"),
        ("save_without_id", "langchain", 8, "times"),
        ("told_newest_first", "pydantic_ai", 4, "had ended before it"),
    ],
)
def test_a_planted_bug_is_caught(plant: str, adapter: str, kills: int, says: str):
    if adapter != "pydantic_ai" and adapters.missing():
        pytest.skip(adapters.missing())
    found = adapters.run(7, kills, "", plant, [adapter])
    assert getattr(found, adapter_plants.PLANTS[plant]) > 0, f"{plant} was not noticed: {found}"
    assert says in found.problems[0]


def story(*requests: str, ended: str = "a b") -> list[Fact]:
    facts = [
        Fact(what, "c", id) for id in ended.split() for what in ("attempt", "accepted", "finishing", "ended")
    ]
    for shown in requests:
        facts += [Fact("shown", "c", "0", shown), Fact("said", "c", "")]
    return facts


def test_the_judge_lets_an_honest_story_pass():
    assert adapters.verdict(story("", "a", "a b")).clean


@pytest.mark.parametrize(
    ("shown", "kind"),
    [(("a",), "lost"), (("a b a",), "doubled"), (("b a",), "misordered"), (("a", "b", "a b"), "lost")],
)
def test_the_judge_sees_what_is_wrong(shown: tuple[str, ...], kind: str):
    assert getattr(adapters.verdict(story(*shown)), kind)
