"""Trees that once got away, each with the fate that it survived."""

from __future__ import annotations

import random

import pytest

from meantime.runners.shell import launcher
from meantime.system import bare_python

from . import hostile, preload, trees

pytestmark = pytest.mark.faults

LEADERLESS = ("leader", "fork leader", "leader fork", "fork setsid leader fork ignore")
BARE = ("bare", "fork bare", "ignore bare fork bare", "env -i", "env -i &")
BLIND = f"""
{bare_python.BEGIN}
from meantime.runners.shell.shim import process_tree as tree
looks, look = [0], tree.descendants
def descendants(of):
    looks[0] += 1
    return look(of) if looks[0] % 3 == 0 else {{}}
tree.descendants = descendants
from meantime.runners.shell.shim.zygote import main
main(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
"""


@pytest.mark.parametrize("fate", ["cancel", "shim"])
def test_a_process_whose_first_thread_has_ended_is_found(fate: str) -> None:
    """It looks like a zombie, and its environment cannot be read where one would look for it."""
    hostile.run(1, 0, "", (fate,), LEADERLESS).check()


def test_a_command_that_changed_its_environment_is_hunted_when_its_shim_is_killed() -> None:
    hostile.run(1, 0, "", ("shim",), BARE).check()


def test_a_look_that_misses_everything_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What forks and goes can be missed by any look at /proc; the kernel knows whether we have children."""
    monkeypatch.setattr(launcher, "CODE", BLIND)
    hostile.run(1, 0, "", ("cancel",), ("ignore fork", "leave setsid leave", "fork setsid")).check()


@pytest.mark.parametrize("fate", ["cancel", "left", "left-reopened", "left-rebooted"])
def test_a_library_that_daemonises_every_program_leaves_nothing(fate: str) -> None:
    if why_not := preload.missing():
        pytest.skip(why_not)
    tally = hostile.run(1, 0, "", (fate,), tuple(trees.PRELOADED))
    tally.check()
    assert tally.faults == len(trees.PRELOADED)


def test_the_whole_family_is_more_than_a_hundred_trees() -> None:
    every = trees.trees(random.Random(1))
    left = sum(fate.startswith("left") for fate in hostile.FATES)
    assert len(every) + (left - 1) * sum(tree.leaves for tree in every) > 100
