"""Every error that Meantime raises arrives as what it was."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from meantime.kernel import errors
from meantime.kernel.errors import MeantimeError
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Lost, Run, Task, Work
from meantime.link.wire_errors import WireError, from_wire, to_wire

TASK = Task(
    id="t_1", thread="a", work=Work("call", "m:f"), status=Status.LOST, run=Run(), outcome=Lost("gone")
)
GIVEN = {
    "message": "Something.",
    "ref": "t_1",
    "candidates": ("t_12", "t_13"),
    "existing": "t_1",
    "what": "reminder",
    "running": 3,
    "limit": 3,
    "notices": ("t_1.1", "t_2.1"),
    "task": TASK,
    "code": "special",
    "hint": "Do this.",
    "by": "user",
    "at": 12.5,
    "answer": "allow",
}
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, MeantimeError)]


def travelled(error: BaseException) -> MeantimeError:
    return from_wire(msgspec.json.decode(msgspec.json.encode(to_wire(error)), type=WireError))


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_round_trips(kind: type[MeantimeError]):
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    sent = kind(**{name: GIVEN[name] for name in names})
    got = travelled(sent)
    assert type(got) is kind
    assert (str(got), got.args) == (str(sent), sent.args)
    assert vars(got) == {"code": sent.code, **vars(sent)}


def test_there_are_many():
    assert len(KINDS) > 20


def test_what_is_none_of_ours_is_a_failure_of_the_owner():
    got = travelled(ZeroDivisionError("one \ud800 by none"))
    assert (type(got), got.code) == (MeantimeError, "internal")
    assert "ZeroDivisionError" in got.message


@pytest.mark.parametrize("kind", ["Task", "annotations", "Exception", "nothing", "__builtins__", "Sequence"])
def test_a_class_that_is_no_error_of_ours_is_not_made(kind: str):
    got = from_wire(WireError(kind, "code", "Text."))
    assert type(got) is MeantimeError


@pytest.mark.parametrize("message", ["model down: bad key", "it is gone.", "is that it?", "first\nlast"])
def test_a_hint_never_runs_on_from_a_message(message: str):
    error = MeantimeError(message, hint="Look at the task.")
    again = from_wire(to_wire(error))
    whole = f"{message}." if message.endswith("key") else message
    assert str(again) == str(error) == f"{whole}{chr(10) if chr(10) in message else ' '}Look at the task."
    assert again.message == message, "the message is kept as it was"
