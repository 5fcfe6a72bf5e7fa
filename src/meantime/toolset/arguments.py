"""The arguments of a tool. The schema that a model sees is made from a struct; a field that is not known is
an error, because it would be ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput
from meantime.kernel.payloads import jsonable
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Said, Tool

A = TypeVar("A", bound=Struct)


class Arguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """The struct of one tool: a field is a parameter, its Meta the description."""


def tool(
    name: str,
    description: str,
    takes: type[A],
    ask: Callable[[A], Ask],
    say: Callable[[Any, Answer], Said],
    *,
    reads: bool = False,
    starts: bool = False,
    cancels: bool = False,
    enums: dict[str, tuple[str, ...]] | None = None,
    without: Sequence[str] = (),
) -> Tool:
    """A Tool whose schema is that of `takes`. `enums` lists the values that a parameter can have today;
    `without`, the parameters that are refused today."""
    known = schema(takes)
    for parameter in without:
        del known["properties"][parameter]
    for parameter, values in (enums or {}).items():
        if values:
            known["properties"][parameter]["enum"] = list(values)
    return Tool(
        name=name,
        description=description,
        takes=takes,
        schema=known,
        ask=ask,
        say=say,
        reads=reads,
        starts=starts,
        cancels=cancels,
    )


def schema(kind: type[Struct]) -> dict[str, Any]:
    """As a tool carries it: one object, without references; what must be given comes first. Models pay for
    it with every question, so it leaves out what they do without: null, a default that is empty, a text of
    at least one character. Arguments from a model are checked all the same."""
    return msgspec.json.decode(_schema_json(kind))


@lru_cache(256)
def _schema_json(kind: type[Struct]) -> bytes:
    """Made once: a model's tools are declared with every turn, and a caller may change what it gets."""
    whole = msgspec.json.schema(kind)
    found = whole["$defs"][whole["$ref"].rpartition("/")[2]]
    required: list[str] = found.get("required", [])
    names = [*required, *(name for name in found["properties"] if name not in required)]
    properties = {name: _lean(found["properties"][name]) for name in names}
    wanted = {"required": required} if required else {}
    return msgspec.json.encode(
        {"type": "object", "properties": properties, **wanted, "additionalProperties": False}
    )


def _lean(one: dict[str, Any]) -> dict[str, Any]:
    kinds = [kind for kind in one.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        one = kinds[0]
    return {key: part for key, part in one.items() if not _needless(key, part)}


def _needless(key: str, part: Any) -> bool:
    if key == "default":  # but zero is a number to know
        return part is None or part is False or part in ("", {}, [])
    return key == "minLength" and part == 1


def decoded(given: object) -> object:
    """Carriers hand over what the model wrote, as a mapping or as its text. A model that gives no arguments
    writes nothing."""
    if not isinstance(given, str | bytes):
        return {} if given is None else given
    try:
        return msgspec.json.decode(given or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise InvalidInput("The arguments are not JSON.") from problem


def parsed(kind: type[A], given: object) -> A:
    said, is_json = jsonable(decoded(given))
    if not is_json:
        raise InvalidInput("The arguments are not JSON.", hint=_hint(kind))

    def error(mismatch: Mismatch) -> InvalidInput:
        return InvalidInput(
            f"The arguments are not right: {mismatch.text}.", hint=_hint(kind, mismatch.field)
        )

    with mismatch_raises(error):
        return msgspec.convert(said, kind)


def _hint(kind: type[Struct], field: str = "") -> str:
    """The allowed alternatives: the values of the parameter that has only some, or the parameters."""
    parameters: dict[str, dict[str, Any]] = schema(kind)["properties"]
    wrong = parameters.get(field, {})
    values: list[object] = wrong.get("enum") or wrong.get("items", {}).get("enum") or []
    if values:
        return f"{field} can be: {', '.join(map(str, values))}."
    return f"There are: {', '.join(parameters) or 'none'}."
