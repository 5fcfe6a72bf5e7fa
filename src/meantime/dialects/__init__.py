"""Vocabularies on the one kernel, by name. Each is a module of its own, loaded when it is first asked for."""

from __future__ import annotations

import importlib
from pkgutil import iter_modules

from meantime.kernel.errors import NotFound
from meantime.ports.dialect import Dialect

__all__ = ["dialect", "names"]


def names() -> list[str]:
    return sorted(found.name for found in iter_modules(__path__) if not found.name.startswith("_"))


def dialect(name: str) -> Dialect:
    """A dialect of ours; one of your own is handed over as it is, and needs no name here."""
    if name not in names():
        raise NotFound(f"There is no dialect {name[:100]!r}.", hint=f"There are: {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name}").DIALECT
