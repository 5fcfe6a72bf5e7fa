"""Why a function that only passes on is there, as far as the source says it.

- Python's own: its name has two underscores.
- public: it, or its class, is a name that users import from a package.
- a port: its class has all methods of a protocol or an abstract class that declares it, or has a base of
  somebody else's, so that others call it without knowing what is behind it.
- makes it async: the contract is async, and the work behind it is not.
- own state: it calls a method of a container, an event, a future or a stream that its object keeps to itself.
- a neighbour: none of these. It is a step that a reader takes for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
REASONS = ("Python's own", "public", "a port", "makes it async", "own state", "a neighbour")
# Methods of values of the standard library that an object keeps to itself.
ENDS = ("abort", "aclose", "cancel", "close", "reset", "result", "set")
OF_VALUES = frozenset((*ENDS, "add", "append", "discard", "exists", "extend", "get", "hexdigest"))
CONTRACTS = ("Protocol", "ABC")


class Package:
    """The classes, contracts and public names of the source."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        nodes = [node for tree in trees.values() for node in ast.walk(tree)]
        self._classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        contracts = [node for node in self._classes.values() if any(map(_is_contract, node.bases))]
        self._contracts = [_methods(node) for node in contracts if _methods(node)]
        texts = [each.value for path, tree in trees.items() for each in _listed(path, tree)]
        self.public = frozenset(word for text in texts if isinstance(text, str) for word in text.split())

    def is_port(self, owner: ast.ClassDef, name: str) -> bool:
        """Whether the class keeps a contract that declares this method, or has a base of another's."""
        members = self._members(owner, set())
        foreign = any("." in _base_name(base) for base in owner.bases)
        return foreign or any(name in contract and contract <= members for contract in self._contracts)

    def _members(self, owner: ast.ClassDef, seen: set[str]) -> set[str]:
        seen.add(owner.name)
        found = _methods(owner) | {
            node.attr
            for node in ast.walk(owner)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        for part in owner.body:
            targets = part.targets if isinstance(part, ast.Assign) else []
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
        for base in owner.bases:
            known = self._classes.get(_base_name(base))
            if known is not None and known.name not in seen:
                found |= self._members(known, seen)
        return found


def _listed(path: str, tree: ast.Module) -> list[ast.Constant]:
    """Texts that a package's `__init__.py` assigns: the names that users import from there."""
    if not path.endswith("__init__.py"):
        return []
    assigned = [
        node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
    ]
    return [each for value in assigned for each in ast.walk(value) if isinstance(each, ast.Constant)]


def _methods(owner: ast.ClassDef) -> set[str]:
    return {part.name for part in owner.body if isinstance(part, Function)}


def _base_name(base: ast.expr) -> str:
    return ast.unparse(base).partition("[")[0]


def _is_contract(base: ast.expr) -> bool:
    return _base_name(base).rpartition(".")[2] in CONTRACTS


def by_reason(
    trees: Mapping[str, ast.Module], passing: Mapping[str, Sequence[Function]]
) -> dict[str, list[str]]:
    package = Package(trees)
    found: dict[str, list[str]] = {reason: [] for reason in REASONS}
    for path, functions in passing.items():
        classes = [node for node in ast.walk(trees[path]) if isinstance(node, ast.ClassDef)]
        owners = {part: node for node in classes for part in node.body}
        for one in functions:
            owner = owners.get(one)
            name = f"{owner.name}.{one.name}" if owner else one.name
            found[_reason(package, one, owner)].append(f"{path}: {name}")
    return found


def _reason(package: Package, one: Function, owner: ast.ClassDef | None) -> str:
    if one.name.startswith("__"):
        return "Python's own"
    if (owner.name if owner else one.name) in package.public:
        return "public"
    if owner is not None and package.is_port(owner, one.name):
        return "a port"
    value = one.body[-1].value if isinstance(one.body[-1], ast.Return | ast.Expr) else None
    if isinstance(one, ast.AsyncFunctionDef) and not isinstance(value, ast.Await):
        return "makes it async"
    call = value.value if isinstance(value, ast.Await) else value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in OF_VALUES:
        return "own state"
    return "a neighbour"
