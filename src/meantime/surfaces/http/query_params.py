"""Query strings, decoded by the struct that declares them. An unknown parameter is refused: a misspelt one
would otherwise be ignored silently, and the answer be that to another question."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput

from .schemas import Params

P = TypeVar("P", bound=Params)


def decoded(given: Mapping[str, str], kind: type[P]) -> P:
    """An empty parameter counts as absent."""
    to = _texts_to(kind)

    def error(mismatch: Mismatch) -> InvalidInput:
        from .validation import query_error

        return query_error(mismatch, kind, given)

    with mismatch_raises(error):
        return msgspec.convert({name: to[name](said) for name, said in given.items() if said}, kind)


@cache
def _texts_to(kind: type[Params]) -> dict[str, Any]:
    from .validation import texts_to  # with the first query string: reading types takes a while

    return texts_to(kind)


def check_names(asked: Iterable[str], known: tuple[str, ...]) -> None:
    if all(name in known for name in asked):
        return
    strange = sorted({name[:64] for name in asked if name not in known})
    meant = difflib.get_close_matches(strange[0], known, n=1)
    there = f"There are: {', '.join(sorted(known))}." if known else "There are none here."
    raise InvalidInput(
        f"Unknown query parameter{'s' if len(strange) > 1 else ''}: {', '.join(strange)}.",
        hint=f"Did you mean {meant[0]}?" if meant else there,
        code="unknown_parameter",
    )
