"""Writes the tables of routes in docs/reference/http.md again, from the table of routes as it is.

python tools/write_http_routes.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from meantime.surfaces.http import routes
from meantime.surfaces.http.routing import AnyRoute
from meantime.surfaces.http.task_schemas import WireTask
from meantime.surfaces.http.validation import bare, choices

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "http.md"
BEYOND = "Beyond the seed"
FEW = 4  # fields of an answer that are named


def table(found: tuple[AnyRoute, ...], takes: str) -> str:
    lines = [f"| path | does | {takes} | gives |", "|---|---|---|---|"]
    for route in found:
        given = _params(route) if route.body is None else _body(route)
        lines.append(f"| {_path(route)} | {_does(route)} | {given} | {_gives(route)} |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "reads": lambda: table(routes.READS, "parameters"),
    "writes": lambda: table(routes.WRITES, "body"),
    "turns": lambda: table(routes.TURNS, "body"),
}


def _path(route: AnyRoute) -> str:
    path = re.sub(r"\{(\w+)\}", r":\1", route.path)
    return f"`{path}`"


def _does(route: AnyRoute) -> str:
    ours = "" if route.seed or route.body is not None else "Ours. "
    return f"{ours}{route.summary}. {route.note}".strip()


def _gives(route: AnyRoute) -> str:
    """A few fields by their names; a task is only called so."""
    named = ""
    kind: Any = route.answer
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not WireTask:
        fields = kind.__struct_encode_fields__
        named = ", ".join(f"`{name}`" for name in fields) + ": " if len(fields) <= FEW else ""
    status = f"{route.status}: " if route.status != 200 else ""
    empty = f" 204: {route.empty}" if route.empty else ""
    return f"{status}{named}{route.gives}{empty}".strip()


def _params(route: AnyRoute) -> str:
    if route.params is None:
        return ""
    found = inspect.type_info(route.params)
    assert isinstance(found, inspect.StructType)
    seeds = [_param(one) for one in found.fields if not (route.seed and BEYOND in _description(one))]
    ours = [_param(one) for one in found.fields if route.seed and BEYOND in _description(one)]
    return ", ".join(seeds) + ("; ours: " if seeds and ours else "ours: " if ours else "") + ", ".join(ours)


def _description(field: inspect.Field) -> str:
    told = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
    return (told or {}).get("description", "")


def _param(field: inspect.Field) -> str:
    name, default = field.encode_name, field.default
    match bare(field.type):
        case inspect.BoolType():
            return f"`{name}=1`"
        case inspect.IntType(le=most) | inspect.FloatType(le=most):
            told = [] if default is None else [f"{default:g}" if default < 1_000 else f"{default:,}"]
            told += [f"at most {most:,.0f}"] if most is not None and most < 1_000_000_000 else []
            return f"`{name}` ({', '.join(told)})" if default != 0 else f"`{name}`"
        case inspect.LiteralType() | inspect.EnumType() as kind:
            others = [one for one in choices(kind) if one != default]
            return f"`{name}` ({', '.join([*([str(default)] if default else []), *others])})"
        case inspect.VarTupleType(item_type=item):
            return f"`{name}` ({', '.join(choices(item))}; several with commas)"
        case _:
            return f"`{name}`"


def _body(route: AnyRoute) -> str:
    assert route.body is not None
    fields = msgspec.structs.fields(route.body)
    return ", ".join(f"`{one.encode_name}`" for one in fields if not one.name.startswith("older_tool"))


def write() -> str:
    """The page as it should be."""
    page = PAGE.read_text("utf-8")
    for name, made in TABLES.items():
        begin, end = f"<!-- routes:{name}:begin -->\n", f"<!-- routes:{name}:end -->"
        before, first, rest = page.partition(begin)
        _, last, after = rest.partition(end)
        assert first, f"{PAGE.name} has lost {begin!r}"
        assert last, f"{PAGE.name} has lost {end!r}"
        page = before + begin + made() + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")
