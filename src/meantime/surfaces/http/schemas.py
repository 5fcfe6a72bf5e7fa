"""The parts of structs on the wire: their bases, and the types that many of them share.

A struct of this folder is the one place that says what a query string, a body or an answer holds. The same
struct decodes or encodes it and is described in /v1/openapi.json: constraints and texts stand in `Meta`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

from msgspec import Meta, Struct


def described(text: str, **more: Any) -> Meta:
    return Meta(description=text, **more)


def refused(text: str, **constraints: Any) -> Meta:
    """Constraints with the error that names them; see validation.py."""
    return Meta(extra={"error": text}, **constraints)


def documented(text: str = "", **keywords: Any) -> Meta:
    """Constraints that only the description holds: another room checks them, with an error of its own."""
    return Meta(description=text or None, extra_json_schema=keywords)


def one_of(*values: str) -> Meta:
    return Meta(extra_json_schema={"enum": list(values)})


StatusWord: TypeAlias = Literal["running", "completed", "error", "cancelled", "resumed"]  # seed 001's
STATUS_WORDS: tuple[str, ...] = get_args(StatusWord)

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Most: TypeAlias = Annotated[int, documented(minimum=-1)]  # -1 is no limit
Id: TypeAlias = Annotated[str, documented(pattern="^[A-Za-z0-9._:-]{1,128}$")]  # as kernel/ids.py checks it
Time: TypeAlias = Annotated[str, documented(format="date-time")] | None
StatusText: TypeAlias = Annotated[str, one_of(*STATUS_WORDS)]
OnLimit: TypeAlias = Annotated[str, one_of("queue", "reject")]


class Params(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The query string of a route. Every parameter is optional; an empty one counts as absent."""


class Body(Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of a route. An unknown field is an error: it would be ignored silently."""


class Answer(Struct, forbid_unknown_fields=True, rename="camel"):
    """The answer of a route. A field is always there, unless its type says that it may be unset."""
