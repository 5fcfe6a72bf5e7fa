"""How far a run has come, in a small file beside its journal: what the next owner has to know."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.kernel.model import Task, fence_of
from meantime.kernel.questions import Question
from meantime.ports import clock as clocks
from meantime.ports.clock import Clock
from meantime.ports.session import Prompt
from meantime.system.atomic_file import replace_file
from meantime.system.platform import boot

TIMEOUT = "timeout"
_encode = msgspec.json.Encoder().encode


class Halt(Struct, frozen=True):
    """Why a run is to come to its end now."""

    code: str
    message: str
    terminate_reason: str = "ERROR"


class Mark(Struct, frozen=True, omit_defaults=True):
    run: tuple[int, int]  # number and attempt
    boot: str  # the monotonic clock begins anew with every start of the machine
    began: float
    session: str = ""
    prompt: Prompt | None = None  # that may have been given: it is never given a second time unasked
    question: Question | None = None  # that was asked, and whose answer the agent may not have heard
    asked: float | None = None  # when, by the monotonic clock; an older mark does not say
    halt: Halt | None = None  # why the prompt is the last


_decode = msgspec.json.Decoder(Mark).decode


def new(task: Task, clock: Clock) -> Mark:
    return Mark(fence_of(task.run), boot(), clock.monotonic())


def load(folder: Path, task: Task) -> Mark | None:
    """None: this run was never begun, as far as anybody knows."""
    try:
        mark = _decode((folder / "mark.json").read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return mark if mark.run == fence_of(task.run) else None


def save(folder: Path, mark: Mark, *, durable: bool = False) -> None:
    """By rename: it is there whole or not at all. `durable`: also over a power cut."""
    path = folder / "mark.json"
    replace_file(path, _encode(mark), synced=durable, durable=durable, draft="mark.draft")


def age(mark: Mark | None, task: Task, clock: Clock) -> float:
    """Seconds that the run has been going on."""
    return 0.0 if mark is None else clocks.age(clock, mark.boot, mark.began, task.run.started_at)


def waited(mark: Mark | None, task: Task, clock: Clock) -> float:
    """Seconds that the open question of the task waits already."""
    question = task.question
    if mark is None or question is None:
        return 0.0
    known = mark.question is not None and mark.question.id == question.id
    return clocks.age(clock, mark.boot, mark.asked if known else None, question.asked_at)
