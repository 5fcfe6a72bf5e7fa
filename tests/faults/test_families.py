"""A few faults of every family, for every `make test`; `python -m tests.faults.run` makes all of them."""

from __future__ import annotations

import os
import random

import pytest

from . import (
    agentruns,
    disk,
    filling,
    hostile,
    kills,
    launches,
    links,
    machine,
    orphans,
    posts,
    schedules,
    strace,
    toolcalls,
)
from .run import SEED

seed = int(os.environ.get(SEED) or random.randrange(1_000_000))
again = f"{SEED}={seed} pytest tests/faults/test_families.py"


@pytest.fixture
def needs_strace() -> None:
    why_not = strace.missing()
    if why_not:
        assert not strace.is_ci(), why_not
        print(f"skipped: {why_not}")
        pytest.skip(why_not)


def test_state_machine_with_crashes() -> None:
    machine.run(seed, 12, 30, again).check()


@pytest.mark.usefixtures("needs_strace")
def test_kill_at_swept_system_calls() -> None:
    kills.sweep(seed, 8, 3, again).check()


def test_kill_at_random_moments_under_load() -> None:
    kills.at_random(seed, 2, 2, again).check()


@pytest.mark.usefixtures("needs_strace")
def test_full_and_failing_disk() -> None:
    disk.run(seed, 4, again).check()


def test_seeded_event_loop_schedules() -> None:
    schedules.run(seed, 40, again).check()


def test_hostile_process_trees() -> None:
    hostile.run(seed, 16, again).check()


def test_kill_of_owners_of_running_commands() -> None:
    orphans.at_random(seed, 2, 1, again).check()


def test_kill_of_owners_and_servers_of_mcp_calls() -> None:
    toolcalls.at_random(seed, 2, 2, again).check()


@pytest.mark.usefixtures("needs_strace")
def test_kill_at_system_calls_of_a_commands_start() -> None:
    launches.sweep(seed, 4, again).check()


@pytest.mark.usefixtures("needs_strace")
def test_kill_at_system_calls_of_agents() -> None:
    agentruns.sweep(seed, 6, again).check()


def test_kill_of_the_daemon_under_load_on_the_link() -> None:
    links.daemons(seed, 1, 1, again).check()


def test_kill_of_executors_under_load() -> None:
    links.executors(seed, 1, 1, again).check()


def test_connections_cut_with_turns_open() -> None:
    links.cuts(seed, 1, 10, again).check()


@pytest.mark.usefixtures("needs_strace")
def test_kill_at_system_calls_of_each_write() -> None:
    posts.sweep(seed, 2, again).check()


def test_full_disk_of_a_daemon() -> None:
    why_not = filling.missing()
    if why_not:
        pytest.skip(why_not)
    filling.run(seed, 1, again).check()
