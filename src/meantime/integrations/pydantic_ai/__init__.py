"""Pydantic AI agents: as working agents (`turns`), as the side that talks and is told (`tools`, `Talk`), and
with steps that are recorded (`Durability`, `durable_run`).

Nothing here loads Pydantic AI before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.pydantic_ai.durability import Durability, durable_run
    from meantime.integrations.pydantic_ai.talk import Talk
    from meantime.integrations.pydantic_ai.task_tools import tools

__all__ = ["Durability", "Talk", "durable_run", "tools"]
__getattr__ = lazy_names(
    __name__,
    {"Durability": "durability", "Talk": "talk", "durable_run": "durability", "tools": "task_tools"},
    "Pydantic AI",
    "pydantic-ai",
)
