"""The table of verbs, of which one is loaded: none pays for another."""

from __future__ import annotations

import sys

from meantime.surfaces.terminal.errors import CliError

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    # Heading → verb → module:attribute, and its line in the help.
    Table = Mapping[str, Mapping[str, tuple[str, str]]]

SERVER = ("click", "httptools", "starlette", "uvicorn")  # packages of the extra of this name
COMPLETE = "_MEANTIME_COMPLETE"  # how click's completion scripts ask


def places(table: Table) -> dict[str, str]:
    """Where each verb is."""
    return {name: where for verbs in table.values() for name, (where, _) in verbs.items()}


def loaded(name: str, where: str) -> Any:
    """A `Verb`, or a command of click."""
    module, _, attribute = where.partition(":")
    try:
        __import__(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            package = (missing.name or "").partition(".")[0]
            wanted = "'meantime[server]'" if package in SERVER else package
            what = f"`{name}` needs {missing.name}, which is not installed."
            raise CliError(what, f"pip install {wanted}") from missing
        raise CliError(f"`{name}` is not part of this version.") from missing
    return getattr(sys.modules[module], attribute)
