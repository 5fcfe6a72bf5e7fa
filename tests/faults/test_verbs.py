"""The family `verbs` finds every verb, makes the same calls again, and can fail."""

from __future__ import annotations

import inspect

import pytest

import meantime
from meantime import thread as async_thread
from meantime.conversation import turn
from meantime.kernel import argument_checks

from . import verbs
from .verb_calls import VERBS
from .verb_objects import CONSTRUCTED, HELD

pytestmark = pytest.mark.faults

# Public classes whose objects a user does not call verbs on.
OTHERS = {
    "Context": "what work says of itself while it runs",
    "Dialect": "a protocol, for dialects of one's own",
    "Host": "a protocol, for hosts of one's own",
    "OpenCodeHost": "a host: Meantime calls it",
}
SEED = 20


def test_every_public_class_with_verbs_is_called():
    called = {kind.__name__ for kind in (*HELD, *CONSTRUCTED)}
    for name in meantime.__all__:
        kind = getattr(meantime, name)
        has_verbs = inspect.isclass(kind) and any(
            inspect.isfunction(member) and not member_name.startswith("_")
            for member_name, member in vars(kind).items()
        )
        is_value = inspect.isclass(kind) and (
            issubclass(kind, Exception) or hasattr(kind, "__struct_fields__")
        )
        if has_verbs and not is_value:
            assert name in called or name in OTHERS, f"{name} has verbs that nobody calls"
    titles = {verb.title for verb in VERBS}
    assert {"Thread.start", "Turn.read", "Meantime.open", "Shell", "jaato tool startBackgroundTask"} <= titles


def test_a_seed_makes_the_same_calls_again():
    one, two = (verbs.run(SEED, 320, "") for _ in range(2))
    assert one.digest == two.digest != verbs.run(SEED + 1, 320, "").digest


@pytest.mark.parametrize("plant", ["a wrong error", "a value's own error", "a text without an end"])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, plant: str):
    if plant == "a wrong error":
        monkeypatch.setattr(
            async_thread, "check_choice", lambda value, what, choices: {"keep": "keep"}[value]
        )
    elif plant == "a value's own error":
        monkeypatch.setattr(turn, "check_all", lambda values, kind, what: list(map(str, values)))
    else:
        monkeypatch.setattr(
            argument_checks, "cut", lambda text, most: "x" * 10_000
        )  # what every error's text shows
    assert verbs.run(SEED, 4_000, "").problems
