"""Pydantic AI agents: as working agents (`turns`), as the side that talks and is told (`tools`, `Talk`), and
with steps that are recorded (`Durability`, `durable_run`).

Nothing here loads Pydantic AI before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.pydantic_ai.durability import Durability, durable_run
    from meantime.integrations.pydantic_ai.talk import Talk
    from meantime.integrations.pydantic_ai.task_tools import tools

__all__ = ["Durability", "Talk", "durable_run", "tools"]
_HOME = {"Durability": "durability", "Talk": "talk", "durable_run": "durability", "tools": "task_tools"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as problem:
        if not (problem.name or "").startswith("pydantic"):
            raise
        from meantime.kernel.errors import InvalidInput

        raise InvalidInput(
            "Pydantic AI is not installed.", hint="pip install 'meantime[pydantic-ai]'"
        ) from problem
