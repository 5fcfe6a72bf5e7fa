"""How a query string or a body that does not fit its struct is said to people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from meantime.kernel.decode_errors import Mismatch
from meantime.kernel.errors import InvalidInput

SEE = "See /v1/openapi.json."


def fields_of(kind: type[msgspec.Struct]) -> dict[str, inspect.Type]:
    """By their names on the wire."""
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return {field.encode_name: field.type for field in found.fields}


def bare(kind: inspect.Type) -> inspect.Type:
    """Without its descriptions, and without None."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        some = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return bare(some[0]) if len(some) == 1 else kind
    return kind


def body_error(mismatch: Mismatch, kind: type[msgspec.Struct]) -> InvalidInput:
    """A constraint has the text that its field declares; everything else says what was expected where."""
    field = fields_of(kind).get(mismatch.field)
    declared = "" if field is None or mismatch.is_type else _declared_error(field)
    if declared:
        return InvalidInput(declared)
    return InvalidInput(f"The body is not right: {mismatch.text}.", hint=SEE)


def _declared_error(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(extra={"error": str(text)}):
            return text
        case inspect.Metadata(type=inner):
            return _declared_error(inner)
        case inspect.UnionType(types=types):
            return "".join([_declared_error(one) for one in types])  # at most one declares it
        case _:
            return ""


def query_error(mismatch: Mismatch, kind: type[msgspec.Struct], given: Mapping[str, str]) -> InvalidInput:
    """Names the parameter with its value; the hint says what it can be."""
    name = mismatch.field
    assert name, mismatch  # every parameter is optional, so one of them is wrong
    said = given[name]
    impossible = f"{name}={said[:40]!r} is not possible."
    match bare(fields_of(kind)[name]):
        case inspect.IntType(ge=least, le=most):
            return InvalidInput(impossible, hint=f"Give a whole number from {least} to {most}.")
        case inspect.FloatType(ge=least, le=most):
            return InvalidInput(impossible, hint=f"Give seconds from {least:g} to {most:g}.")
        case inspect.BoolType():
            return InvalidInput(f"{name}={said[:40]!r} is neither true nor false.")
        case inspect.StrType(max_length=most):
            return InvalidInput(f"{name} is longer than {most} characters.", hint="Look for less.")
        case inspect.VarTupleType(item_type=item):
            hint = f"Use one of: {', '.join(choices(item))}."
            return InvalidInput(f"{name}={said[:80]!r} names a {name} that is unknown.", hint=hint)
        case other:
            hint = f"Use one of: {', '.join(choices(other))}."
            return InvalidInput(f"{name}={said[:40]!r} is unknown.", hint=hint)


def choices(kind: inspect.Type) -> list[str]:
    """The values of a Literal or an Enum."""
    match bare(kind):
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.EnumType(cls=cls):
            return [str(member.value) for member in cls]
        case other:
            raise TypeError(f"{other} has no choices")


def texts_to(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """How the text of each parameter becomes a value of its type."""
    return {name: _CONVERTED.get(type(bare(field)), str) for name, field in fields_of(kind).items()}


def _whole(said: str) -> int | str:
    digits = said.removeprefix("-")
    return int(said) if digits.isascii() and digits.isdigit() and len(digits) <= 19 else said


_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?\Z", re.ASCII)
_TRUTH = {"0": False, "1": True, "true": True, "false": False}


def _decimal(said: str) -> float | str:
    return float(said) if _SECONDS.match(said) else said


def _truth(said: str) -> bool | str:
    return _TRUTH.get(said.lower(), said)


def _words(said: str) -> list[str]:
    return [word for word in said.split(",") if word]


# What cannot be converted stays a text, which msgspec then refuses.
_CONVERTED: dict[type[inspect.Type], Any] = {
    inspect.IntType: _whole,
    inspect.FloatType: _decimal,
    inspect.BoolType: _truth,
    inspect.VarTupleType: _words,
}
