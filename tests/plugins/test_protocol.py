"""F15: the protocol of seed 003, as it is written there."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import datetime
from typing import Any

import pytest
from toolbox import Files, Foreign

from meantime import InvalidInput, Status
from meantime.plugins import (
    BackgroundCapable,
    BackgroundConfig,
    BackgroundExtras,
    RunsInBackground,
    TaskHandle,
    TaskResult,
    TaskStatus,
)
from meantime.plugins.task_handles import STATUS

REQUIRED = {"supports_background", "start_background", "get_status", "get_result", "cancel"}
OPTIONAL = {
    "get_auto_background_threshold",
    "estimate_duration",
    "list_tasks",
    "cleanup_completed",
    "register_running_task",
}


def members(protocol: type) -> set[str]:
    return {name for name, member in vars(protocol).items() if name[0] != "_" and inspect.isfunction(member)}


@pytest.mark.behaviour("F15")
def test_the_required_part_is_small():
    assert members(BackgroundCapable) == REQUIRED
    assert members(BackgroundExtras) == OPTIONAL


@pytest.mark.behaviour("F15")
def test_capability_is_a_matter_of_methods():
    """No base class is needed; the mixin has all of it, required and optional."""
    assert isinstance(Foreign(), BackgroundCapable)
    assert not isinstance(object(), BackgroundCapable)
    assert isinstance(Files(), BackgroundCapable)
    assert isinstance(Files(), BackgroundExtras)
    assert not isinstance(Foreign(), BackgroundExtras)


@pytest.mark.behaviour("F15")
@pytest.mark.parametrize("protocol", [BackgroundCapable, BackgroundExtras])
def test_the_mixin_has_the_protocols_signatures(protocol: type):
    for name in members(protocol):
        wanted = inspect.signature(getattr(protocol, name))
        assert inspect.signature(getattr(RunsInBackground, name)) == wanted


@pytest.mark.behaviour("F15")
def test_values_are_as_the_seed_has_them():
    assert [status.value for status in TaskStatus] == [
        "pending",
        "running",
        "completed",
        "failed",
        "cancelled",
        "timeout",
    ]
    now = datetime.now()
    assert dataclasses.asdict(TaskHandle("t", "cli", "runCommand", now)) == {
        "task_id": "t",
        "plugin_name": "cli",
        "tool_name": "runCommand",
        "created_at": now,
        "estimated_duration_seconds": None,
        "metadata": None,
    }
    names = [field.name for field in dataclasses.fields(TaskResult)]
    assert names == ["task_id", "status", "result", "error", "started_at", "completed_at", "duration_seconds"]
    assert dataclasses.asdict(BackgroundConfig()) == {
        "max_concurrent_tasks": 10,
        "default_timeout_seconds": 300.0,
        "completed_task_retention_seconds": 3600.0,
        "background_threshold_seconds": 10.0,
    }


def test_every_status_of_ours_has_one_of_theirs():
    """Total, by the kernel's own list."""
    assert set(STATUS) == set(Status)
    assert {status: STATUS[status].value for status in Status} == {
        "queued": "pending",
        "running": "running",
        "waiting": "running",
        "cancelling": "running",
        "completed": "completed",
        "failed": "failed",
        "cancelled": "cancelled",
        "timed_out": "timeout",
        "lost": "failed",
    }


@pytest.mark.behaviour("H24")
@pytest.mark.parametrize(
    "bad",
    [
        {"max_concurrent_tasks": 0},
        {"max_concurrent_tasks": -2},
        {"max_concurrent_tasks": 2.5},
        {"max_concurrent_tasks": True},
        {"default_timeout_seconds": 0},
        {"default_timeout_seconds": float("nan")},
        {"completed_task_retention_seconds": -1},
        {"completed_task_retention_seconds": "1h"},
        {"background_threshold_seconds": -1},
        {"background_threshold_seconds": float("inf")},
    ],
    ids=str,
)
def test_a_config_that_makes_no_sense_is_refused(bad: dict[str, Any]):
    with pytest.raises(InvalidInput):
        BackgroundConfig(**bad)


@pytest.mark.behaviour("H24")
def test_minus_one_is_no_limit():
    assert BackgroundConfig(max_concurrent_tasks=-1, default_timeout_seconds=-1)
