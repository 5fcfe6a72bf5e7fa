"""Measures the structure of src/meantime, and how far one start walks through it.

python tools/measure_structure.py            prints the figures
python tools/measure_structure.py --files    and the files of the walk, with their calls
python tools/measure_structure.py --hops     and the calls that enter another room
python tools/measure_structure.py --gains    and how many changes of room each function would save
python tools/measure_structure.py --json F   and writes everything to the file F
python tools/measure_structure.py --shared   lists the base names that several files have
python tools/measure_structure.py --passes   lists the functions that only pass on, by the reason they have
python tools/measure_structure.py --write    and writes docs/internals/structure.md
python tools/measure_structure.py --no-walk  reads the source only, which takes a second

Rooms. A room is a folder, at most two levels deep (`surfaces/cli`, `runners/shell`, `kernel`). Between rooms
a loose module of the top (`thread.py`, `turn.py`) is a room of its own when cycles are looked for, because
each of them is a layer. In the walk all of them are the one room `top`, because a reader finds them in one
place.

Functions that only pass on. `pass_reasons.py` says why each of them is there.

Cycles. The edges between files are the imports that run when a module is loaded; those inside functions and
under TYPE_CHECKING are left out, as Python does not run them while it loads. A cycle is a strongly
connected set of more than one file. Rooms are connected by the imports of their files, deferred ones too.

The walk. `walk_figures.py` says what is counted.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from call_trace import PACKAGE, room_of
from pass_reasons import by_reason
from walk_figures import walk_figures

PARALLEL = frozenset({"runner.py", "host.py", "store.py", "errors.py"})  # one for each adapter, by intention
UNNAMED = frozenset({"__init__.py", "__main__.py"})  # Python chose these names


class Source(NamedTuple):
    path: str  # below the package
    lines: int
    tree: ast.Module


def sources(package: Path = PACKAGE) -> list[Source]:
    found: list[Source] = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        found.append(Source(path.relative_to(package).as_posix(), len(text.splitlines()), ast.parse(text)))
    return found


# -- sizes and names


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest value that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(len(values) * share) - 1]


def statements(node: ast.AST, is_deferred: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All statements below a node, and whether loading the module leaves them out: those of functions, and
    those for type checkers. Expressions are passed over: nothing that is measured is in one."""
    deferred = is_deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    deferred = deferred or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for each in getattr(node, part, ()):
            yield each, deferred
            yield from statements(each, deferred)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node, _ in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstring_lines(tree: ast.Module) -> int:
    found = 0
    for node in (tree, *(node for node, _ in statements(tree))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = _docstring(node)
            found += 0 if text is None else (text.end_lineno or text.lineno) - text.lineno + 1
    return found


def _docstring(node: Any) -> ast.Expr | None:
    first = node.body[0] if node.body else None
    match first:
        case ast.Expr(value=ast.Constant(value=str())):
            return first
        case _:
            return None


def shared_names(files: Iterable[str]) -> dict[str, list[str]]:
    """Files by the base name that they share with another file. Names that Python chose do not count."""
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(file.rpartition("/")[2], []).append(file)
    return {name: found for name, found in by_name.items() if len(found) > 1 and name not in UNNAMED}


# -- functions that only pass on


def pass_throughs(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions whose body, apart from the docstring, is one call that is given all of their parameters,
    unchanged and nothing else. One without parameters counts if it is a method that calls an attribute
    of its self."""
    return [each for each in functions(tree) if _passes_on(each)]


def _passes_on(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = function.body[1:] if _docstring(function) else function.body
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    call = body[0].value
    call = call.value if isinstance(call, ast.Await) else call
    if not isinstance(call, ast.Call):
        return False
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [f"{stars}{each.arg}" for stars, each in (("*", given.vararg), ("**", given.kwarg)) if each]
    own = names.pop(0) if names and names[0] in ("self", "cls") else None
    passed = [_name(each) for each in call.args]
    passed += [f"{'' if each.arg else '**'}{_name(each.value)}" for each in call.keywords]
    if any(keyword.arg not in (None, _name(keyword.value)) for keyword in call.keywords):
        return False
    is_of_self = own is not None and _root(call.func) == own and isinstance(call.func, ast.Attribute)
    return sorted(names) == sorted(passed) and (bool(names) or is_of_self) and _is_simple(call.func)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Starred):
        return f"*{_name(node.value)}"
    return node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return _name(node)


def _is_simple(node: ast.expr) -> bool:
    return bool(_root(node))


# -- imports


class Import(NamedTuple):
    source: str
    target: str
    is_deferred: bool  # inside a function, or for type checkers only


def imports(found: Sequence[Source], package: str = PACKAGE.name) -> list[Import]:
    modules = {_module(each.path, package): each.path for each in found}
    edges: set[Import] = set()
    for source in found:
        for node, is_deferred in statements(source.tree):
            for target in _targets(node, _module(source.path, package), source.path):
                name = target if target in modules else target.rpartition(".")[0]
                if name in modules and modules[name] != source.path:
                    edges.add(Import(source.path, modules[name], is_deferred))
    return sorted(edges)


def _module(path: str, package: str) -> str:
    parts = [package, *path.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.AST, module: str, path: str) -> list[str]:
    """Each name that a statement imports, whole; it may be a module or something in one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        up = node.level - 1 if path.endswith("__init__.py") else node.level
        parts = module.split(".")
        base = ".".join([*parts[: len(parts) - up], *([base] if base else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def cycles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Strongly connected sets of more than one node, each in order."""
    after: dict[str, set[str]] = {}
    for source, target in edges:
        after.setdefault(source, set()).add(target)
        after.setdefault(target, set())
    reached = {node: _reached(node, after) for node in after}
    sets = {frozenset({other for other in reached[node] if node in reached[other]}) for node in after}
    return sorted(sorted(each) for each in sets if len(each) > 1)


def _reached(node: str, after: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [node]
    while waiting:
        for other in after[waiting.pop()]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def layer_of(file: str) -> str:
    """The package of a file, where a loose module is a package of its own."""
    room = room_of(file)
    return file.removesuffix(".py") if room == "top" else room


def circular_rooms(edges: Iterable[Import]) -> list[list[str]]:
    """Pairs of packages that import each other."""
    crossing = {(layer_of(edge.source), layer_of(edge.target)) for edge in edges}
    return sorted([one, other] for one, other in crossing if one < other and (other, one) in crossing)


# -- all of it


def figures(found: Sequence[Source] | None = None) -> dict[str, Any]:
    """The figures that the source alone gives."""
    found = sources() if found is None else found
    edges = imports(found)
    lines = [each.lines for each in found]
    sizes = [(each.end_lineno or 0) - each.lineno + 1 for source in found for each in functions(source.tree)]
    shared = shared_names(each.path for each in found)
    named = [each for each in found if each.path.rpartition("/")[2] not in UNNAMED]
    passing = {source.path: pass_throughs(source.tree) for source in found}
    trees = {source.path: source.tree for source in found}
    unplanned = sum(len(files) for name, files in shared.items() if name not in PARALLEL)
    return {
        "files": len(found),
        "lines": sum(lines),
        "module lines": {
            "median": int(statistics.median(lines)), "p95": percentile(lines, 0.95), "max": max(lines),
        },
        "function lines": {"count": len(sizes), "p95": percentile(sizes, 0.95), "max": max(sizes)},
        "cycles of files": cycles((edge[0], edge[1]) for edge in edges if not edge.is_deferred),
        "cycles of files, deferred imports too": cycles((edge[0], edge[1]) for edge in edges),
        "rooms that import each other": circular_rooms(edges),
        "rooms that import each other when loaded": circular_rooms(
            edge for edge in edges if not edge.is_deferred
        ),
        "shared base names": {
            "files": sum(map(len, shared.values())),
            "share": round(sum(map(len, shared.values())) / len(named), 3),
            "share without parallel adapters": round(unplanned / len(named), 3),
            "names": {name: len(files) for name, files in sorted(shared.items())},
        },
        "docstring lines": {
            "lines": (doc := sum(docstring_lines(each.tree) for each in found)),
            "share": round(doc / sum(lines), 3),
        },
        "pass-through functions": {
            "count": sum(map(len, passing.values())),
            "by reason": by_reason(trees, passing),
        },
    }  # fmt: skip


def walked() -> dict[str, Any]:
    from traced_starts import embedded

    walk = embedded()
    return {"start": walk_figures(walk.until_started), "start to ack": walk_figures(walk.calls)}


def report(found: dict[str, Any], *, files: bool = False, hops: bool = False, gains: bool = False) -> str:
    modules, sizes, names = found["module lines"], found["function lines"], found["shared base names"]
    both = found["rooms that import each other"]
    loaded = found["rooms that import each other when loaded"]
    deferred = len(found["cycles of files, deferred imports too"])
    texts, passing = found["docstring lines"], found["pass-through functions"]
    lines = [
        f"files                  {found['files']}, {found['lines']:,} lines",
        f"module lines           median {modules['median']}, p95 {modules['p95']}, max {modules['max']}",
        f"function lines         p95 {sizes['p95']}, max {sizes['max']}, of {sizes['count']:,}",
        f"cycles of files        {len(found['cycles of files'])}; with deferred imports {deferred}",
        f"rooms in a circle      {_pairs(loaded)}",
        f"  by deferred imports  {_pairs([pair for pair in both if pair not in loaded])}",
        f"shared base names      {names['share']:.1%} of the files; "
        f"{names['share without parallel adapters']:.1%} without {', '.join(sorted(PARALLEL))}",
        f"docstring lines        {texts['share']:.1%}",
        f"pass-through functions {passing['count']}: "
        + ", ".join(f"{len(some)} {why}" for why, some in passing["by reason"].items()),
    ]
    for what, walk in found.get("walk", {}).items():
        lines.append(
            f"{what:22} {walk['files']} files, {walk['changes of file']} changes of file, "
            f"{walk['changes of room']} of room, {walk['hops']} hops "
            f"({walk['different hops']} different), {walk['calls']} calls on {walk['paths']} paths"
        )
        for title, wanted in (("by file", files), ("by hop", hops), ("gains", gains)):
            lines += [f"  {count:4} {name}" for name, count in walk[title].items() if wanted]
    return "\n".join(lines)


PAGE = PACKAGE.parents[1] / "docs/internals/structure.md"
INTRO = """# The structure in figures

Written by `python tools/measure_structure.py --write`; `tests/meta/test_structure.py` keeps the limits. The
walk is that of `thread.start(Shell(…))`: the files that a reader opens to follow it, and how often the call
changes rooms.
"""
PASSING = """## Functions that only pass on

A function counts if its body, apart from a docstring, is one call that is given exactly its own parameters,
unchanged: `*args` as `*args`, keywords under their own names. A method without parameters counts if it calls
something that its object holds. Properties count, too. Until November 2026 a function that packs `*args`
into one argument counted as well: 116 by that rule were 112 by this one.
A clean-up then left 94, and newer packages have added some.

`tools/pass_reasons.py` says how each reason is found. The ones under "a neighbour" hide an object that their
class keeps to itself.
"""


def page(found: dict[str, Any]) -> str:
    """The figures as a page of the docs."""
    modules, sizes, names = found["module lines"], found["function lines"], found["shared base names"]
    passing, walk = found["pass-through functions"], found["walk"]["start"]
    both = found["rooms that import each other"]
    rows = {
        "files, lines": f"{found['files']}, {found['lines']:,}",
        "module lines: median / p95 / max": f"{modules['median']} / {modules['p95']} / {modules['max']}",
        "function lines: p95 / max": f"{sizes['p95']} / {sizes['max']}",
        "import cycles between files": str(len(found["cycles of files"])),
        "packages that import each other": _pairs(both).replace("<->", "and"),
        "files that share their base name": f"{names['share']:.1%}",
        "docstring lines": f"{found['docstring lines']['share']:.1%}",
        "files of one start": str(walk["files"]),
        "changes of room in one start": str(walk["changes of room"]),
        "functions that only pass on": str(passing["count"]),
    }
    table = ["| figure | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    lists = [
        f"**{why}** ({len(some)}): {', '.join(f'`{one}`' for one in some)}."
        for why, some in passing["by reason"].items()
    ]
    return "\n".join([INTRO, *table, "", PASSING, "\n\n".join(lists), ""])


def _pairs(pairs: Iterable[Sequence[str]]) -> str:
    return ", ".join(" <-> ".join(pair) for pair in pairs) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the structure of the package.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--files", action="store_true", help="list the files of the walk with their calls")
    parser.add_argument("--hops", action="store_true", help="list the calls that enter another room")
    parser.add_argument("--gains", action="store_true", help="list what avoiding a call would save")
    parser.add_argument("--shared", action="store_true", help="only list base names that files share")
    parser.add_argument("--passes", action="store_true", help="only list functions that only pass on")
    parser.add_argument("--write", action="store_true", help="write docs/internals/structure.md, too")
    parser.add_argument("--no-walk", action="store_true", help="read the source only")
    given = parser.parse_args()
    found = figures()
    if given.shared:
        names = found["shared base names"]["names"]
        print("\n".join(f"{count} {name}" for name, count in names.items()))  # noqa: T201  what it is for
        return
    if given.passes:
        for why, some in found["pass-through functions"]["by reason"].items():
            print(f"{why}: {len(some)}", *(f"  {one}" for one in some), sep="\n")  # noqa: T201  what it is for
        return
    if not given.no_walk:
        found["walk"] = walked()
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    if given.write:
        PAGE.write_text(page(found), "utf-8")
    print(report(found, files=given.files, hops=given.hops, gains=given.gains))  # noqa: T201  what it is for


if __name__ == "__main__":
    main()
