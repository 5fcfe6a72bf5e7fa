"""The outcome of a task that has ended, as the kind that a test expects; any other kind fails the test."""

from __future__ import annotations

from typing import Protocol, TypeVar

from meantime import Cancelled, Completed, Failed, Lost, TimedOut
from meantime.kernel.model import Outcome

Kind = TypeVar("Kind", Completed, Failed, Cancelled, Lost)


class Ended(Protocol):
    """A task or a notice."""

    @property
    def outcome(self) -> Outcome | None: ...


def completed(ended: Ended | None) -> Completed:
    return _outcome(ended, Completed)


def failed(ended: Ended | None) -> Failed:
    return _outcome(ended, Failed)


def cancelled(ended: Ended | None) -> Cancelled:
    return _outcome(ended, Cancelled)


def lost(ended: Ended | None) -> Lost:
    return _outcome(ended, Lost)


def unfinished(ended: Ended | None) -> Failed | Cancelled | TimedOut | Lost:
    """For its partial output, which every ending without a result has."""
    assert ended is not None
    assert isinstance(ended.outcome, Failed | Cancelled | TimedOut | Lost), ended.outcome
    return ended.outcome


def _outcome(ended: Ended | None, kind: type[Kind]) -> Kind:
    assert ended is not None
    assert isinstance(ended.outcome, kind), ended.outcome
    return ended.outcome
