"""Writes tests/meta/public_signatures.txt again: the signature of every public name, with its methods.

python tools/write_signatures.py

A public signature changes only together with a line in CHANGELOG.md. So this refuses to write while a name
that has changed, come or gone is not mentioned in an entry that was added since the file was last written.
The file keeps a short hash of every entry that was there then.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from bare_annotations import bare
from msgspec import Struct

import meantime

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "tests" / "meta" / "public_signatures.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
HEAD = "# Written by tools/write_signatures.py; do not edit.\n"
KNOWN = "# changelog entries:"


def signatures() -> dict[str, str]:
    """By qualified name, sorted: how it is called, what it gives, or which values it has."""
    found = {}
    for name in meantime.__all__:
        thing = getattr(meantime, name)
        found[name] = _of_class(thing) if inspect.isclass(thing) else _called(thing)
        for base in reversed(thing.__mro__) if inspect.isclass(thing) else ():
            if base.__module__.startswith("meantime"):
                found |= {f"{name}.{member}": said for member, said in _members(base)}
    return dict(sorted(found.items()))


def stored(text: str) -> dict[str, str]:
    """The same, as a written file has it."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: said for name, _, said in (line.partition(" ") for line in lines)}


def entries(changelog: str) -> dict[str, str]:
    """The entries of the changelog by a short hash."""
    found = re.findall(r"(?m)^- (.*(?:\n  .*)*)", changelog)
    return {hashlib.sha256(entry.encode()).hexdigest()[:8]: entry for entry in found}


def unmentioned(old: str, new: dict[str, str], changelog: str) -> list[str]:
    """Names that have changed since `old` was written, and that no newer entry of the changelog mentions."""
    before = stored(old)
    changed = [name for name in before | new if before.get(name) != new.get(name)]
    known = set(re.findall(rf"(?m)^{KNOWN}(.*)$", old)[0].split()) if KNOWN in old else set[str]()
    fresh = " ".join(entry for hash, entry in entries(changelog).items() if hash not in known)
    return [name for name in changed if not re.search(rf"\b{name.rpartition('.')[2]}\b", fresh)]


def written(new: dict[str, str], hashes: Collection[str]) -> str:
    lines = "".join(f"{name} {said}\n" for name, said in new.items())
    return f"{HEAD}{KNOWN} {' '.join(hashes)}\n{lines}"


def _of_class(cls: type) -> str:
    if issubclass(cls, Enum):
        return f"enum {', '.join(member.value for member in cls)}"
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    try:
        return f"class({bases}) {_called(cls)}"
    except ValueError:  # nothing that Python could inspect
        return f"class({bases})"


def _members(cls: type) -> Iterator[tuple[str, str]]:
    for name, found in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(found, property) and found.fget is not None:
            yield name, f"property{_called(found.fget)}"
        elif isinstance(found, cached_property):
            yield name, f"property{_called(found.func)}"
        elif isinstance(found, classmethod | staticmethod):
            yield name, f"{type(found).__name__} {_called(found.__func__)}"
        elif inspect.isfunction(found):
            yield name, _called(found)


def _called(fn: Callable[..., Any]) -> str:
    """Types are as the source writes them: they do not change with the version of Python or with a move."""
    found = inspect.signature(fn)
    written = {}
    for base in reversed(fn.__mro__) if inspect.isclass(fn) and issubclass(fn, Struct) else ():
        written |= {
            name: bare(kind) for name, kind in inspect.get_annotations(base).items() if isinstance(kind, str)
        }
    given = [
        one.replace(annotation=written.get(one.name, one.annotation)) for one in found.parameters.values()
    ]
    said = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(found.replace(parameters=given)))
    said = re.sub(r"<[^<>]*>|\S+ at 0x[0-9a-f]+", "…", said)
    before = "async " if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn) else ""
    return before + said


def main() -> int:
    old = SNAPSHOT.read_text("utf-8") if SNAPSHOT.exists() else ""
    changelog = CHANGELOG.read_text("utf-8")
    new = signatures()
    if old and (missing := unmentioned(old, new, changelog)):
        sys.stderr.write(
            f"These public names have changed, and no new line of CHANGELOG.md mentions them: "
            f"{', '.join(missing)}.\nAdd one that says what users have to know, and run this again.\n"
        )
        return 1
    SNAPSHOT.write_text(written(new, entries(changelog)), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
