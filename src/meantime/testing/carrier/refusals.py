"""Calls that a carrier must refuse before anything is sent."""

from __future__ import annotations

from collections.abc import Callable

from meantime.kernel.errors import InvalidInput


def assert_refused(call: Callable[[], object], says: str) -> None:
    said = ""
    try:
        call()
    except InvalidInput as problem:
        said = str(problem)
    assert said, f"it was not refused; the refusal would say {says!r}"
    assert says in said, f"the refusal does not say {says!r}: {said}"
