"""The modules of the first view as one file: a browser takes longer for forty files than for their bytes.

They are written one behind the other, each after those that it imports, without their imports and the word
`export`. So they share one scope, and no two of them may declare the same name. Modules that are loaded later
import the same names from the same paths: there each is a line that passes on what the one file exports.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

# At the start of a line, so that a type in a comment, `import("./types.js").Row`, is not taken for an import;
# without a parenthesis, because `import("./dialog.js")` loads a module later.
_FROM = re.compile(
    r"""^(?:import|export)\b(?:([^"';()]*)\bfrom)?\s*["'](\.{1,2}/[^"']+)["'];?\n?""", re.MULTILINE
)
_LATER = re.compile(r"""\bimport\("(\.{1,2}/[^"]+)"\)""")
_EXPORT = re.compile(r"^export (?=async |function|class|const|let)", re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:async )?(?:function\*?|class|const|let) (\w+)", re.MULTILINE)


def imported(name: str, text: str) -> list[str]:
    """The modules that a module loads by itself, in their order."""
    return [_beside(name, path) for _, path in _FROM.findall(text)]


def declared(text: str) -> list[str]:
    """The names that a module declares for all of it."""
    return [found for _, found in _DECLARED.findall(text)]


def in_order(first: Sequence[str], modules: Mapping[str, str]) -> list[str]:
    """These and everything that they load, each module behind those that it imports."""
    found: list[str] = []
    opened = set[str]()

    def take(name: str) -> None:
        if name in modules and name not in opened:
            opened.add(name)
            for other in imported(name, modules[name]):
                take(other)
            found.append(name)

    for name in first:
        take(name)
    return found


def joined(modules: Mapping[str, str]) -> str:
    """These modules, in this order, as one for the folder that holds them all. Imports of other modules, such
    as the vendored ones, stay."""
    outside: dict[str, set[str]] = {}
    parts: list[str] = []
    for name, text in modules.items():
        for names, path in _FROM.findall(text):
            other = _beside(name, path)
            if other not in modules:
                outside.setdefault(other, set()).update(re.findall(r"[\w$]+", names))
        body = _EXPORT.sub("", _FROM.sub("", text))
        body = _LATER.sub(lambda found, name=name: f'import("./{_beside(name, found[1])}")', body)
        parts.append(f"// {name}\n{body}")
    head = [
        f'import {{ {", ".join(sorted(names - {"import"}))} }} from "./{other}";\n'
        for other, names in outside.items()
    ]
    names = sorted(one for text in modules.values() for one in _exported(text))
    return "".join([*head, *parts, f"export {{ {', '.join(names)} }};\n"])


def passed_on(name: str, text: str, bundle: str) -> str:
    """The module `name` for those that import it: its exports, from the one file."""
    path = posixpath.relpath(bundle, posixpath.dirname(name) or ".")
    path = path if path.startswith(".") else f"./{path}"
    names = _exported(text)
    return f'export {{ {", ".join(names)} }} from "{path}";\n' if names else f'import "{path}";\n'


def _exported(text: str) -> list[str]:
    return [name for export, name in _DECLARED.findall(text) if export]


def _beside(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
