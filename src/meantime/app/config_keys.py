"""The structs of config_schema.py as a list of keys, for whoever reads, shows or documents them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import Struct

from meantime.kernel.constraints import Constraint

from .config_schema import Config

# Names that were there before the rule, ours before seed 001's.
OLDER = {
    "http.port": ("MEANTIME_API_PORT", "ASYNCAGENTS_API_PORT"),
    "http.enabled": ("MEANTIME_API_ENABLED", "ASYNCAGENTS_API_ENABLED"),
}


class Key(NamedTuple):
    name: str  # section.key, or the key alone
    type: Any
    kind: Constraint
    doc: str
    default: Any

    @property
    def variable(self) -> str:
        return f"MEANTIME_{self.name.replace('.', '_').upper()}"

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable, *OLDER.get(self.name, ()))


@cache
def known() -> dict[str, Key]:
    """Every key, in the order in which people see them."""
    return {key.name: key for key in _keys(Config, "")}


@cache
def sections() -> dict[str, str]:
    """Every section, with what it is about."""
    found = get_type_hints(Config)
    return {name: (kind.__doc__ or "") for name, kind in found.items() if isinstance(kind, type(Struct))}


def _keys(struct: Any, prefix: str) -> Iterator[Key]:
    defaults = struct()
    for name, hint in get_type_hints(struct, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            yield from _keys(hint, f"{name}.")
            continue
        type_, kind, doc = get_args(hint)
        yield Key(f"{prefix}{name}", type_, kind, doc, getattr(defaults, name))
