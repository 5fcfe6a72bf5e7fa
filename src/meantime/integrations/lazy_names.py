"""Names of an adapter that are loaded with their first use, because they load a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from meantime.kernel.errors import InvalidInput


class NotInstalled(InvalidInput, ImportError):
    """A framework is missing. Also an ImportError, which is what programs expect of an import."""


def lazy_names(adapter: str, homes: Mapping[str, str], framework: str, extra: str) -> Callable[[str], Any]:
    """The `__getattr__` of an adapter's package.

    adapter: the package.
    homes: the module of each name.
    framework, extra: for the one who has not installed it.
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {adapter!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{adapter}.{homes[name]}"), name)
        except ModuleNotFoundError as problem:
            if (problem.name or "").partition(".")[0] == "meantime":
                raise
            what = f"{framework} is not installed: {problem}."
            raise NotInstalled(what, hint=f"pip install 'meantime[{extra}]'") from problem

    return found
