"""Vocabularies on the one kernel, by name. Each is a module of its own, loaded when it is first asked for."""

from __future__ import annotations

import importlib
from functools import cache
from pkgutil import iter_modules

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import NotFound
from meantime.kernel.plain_text import plain
from meantime.ports.dialect import Dialect

__all__ = ["dialect", "names"]


@cache
def names() -> tuple[str, ...]:
    """Our own dialects; a name with an underscore is only a part of some."""
    return tuple(sorted(found.name for found in iter_modules(__path__) if found.name[0] != "_"))


def dialect(name: str) -> Dialect:
    """A dialect of ours; one of your own is handed over as it is, and needs no name here."""
    if not isinstance(name, str) or plain(name) not in names():  # pyright: ignore[reportUnnecessaryIsInstance]  it comes from outside
        raise NotFound(f"There is no dialect {shown(name)}.", hint=f"There are: {', '.join(names())}.")
    return _loaded(plain(name))


@cache
def _loaded(name: str) -> Dialect:
    return importlib.import_module(f"{__name__}.{name}").DIALECT
