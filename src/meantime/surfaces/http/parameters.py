"""Which query parameters each route knows: those that the description names, and no others. One that is
misspelt would else be passed over in silence, and the answer be that to another question."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from meantime.kernel.errors import InvalidInput


@cache
def document() -> bytes:
    return files(__package__ or "").joinpath("openapi.json").read_bytes()


@cache
def known() -> dict[str, frozenset[str]]:
    """By "GET /v1/tasks"."""
    described: dict[str, Any] = msgspec.json.decode(document())
    shared = described["components"]["parameters"]
    found: dict[str, frozenset[str]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            given = [_resolved(one, shared) for one in operation.get("parameters", ())]
            found[f"{method.upper()} {path}"] = frozenset(
                one["name"] for one in given if one["in"] == "query"
            )
    return found


def _resolved(parameter: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    named = parameter.get("$ref")
    return shared[named.rpartition("/")[2]] if named else parameter


def check(asked: Iterable[str], names: frozenset[str]) -> None:
    strange = sorted({name[:64] for name in asked if name not in names})
    if not strange:
        return
    meant = difflib.get_close_matches(strange[0], names, n=1)
    there = f"There are: {', '.join(sorted(names))}." if names else "There are none here."
    raise InvalidInput(
        f"Unknown query parameter{'s' if len(strange) > 1 else ''}: {', '.join(strange)}.",
        hint=f"Did you mean {meant[0]}?" if meant else there,
        code="unknown_parameter",
    )
