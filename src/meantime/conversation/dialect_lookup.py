"""Dialects by their names, for packages below the one that has them; and a thread's reminder in one."""

from __future__ import annotations

import importlib
from typing import TypeAlias

from meantime.kernel.argument_checks import has_methods
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.plain_text import plain
from meantime.ports.dialect import Configurable, Dialect, Standing
from meantime.ports.tasks import Tasks

OWN = "meantime"
MOST = 1_000
Wording: TypeAlias = "str | Dialect"


def dialect_of(given: Wording) -> Dialect:
    """Raises NotFound, listing the known dialects, for an unknown name."""
    if isinstance(given, str):
        return importlib.import_module("meantime.dialects").dialect(given)
    if not has_methods(given, "tools", "commands", "message", "reminder", "problem"):
        raise InvalidInput(
            f"A dialect is a name or a Dialect, not {type(given).__name__}.", hint='Such as "meantime".'
        )
    return given


def configured(dialect: Dialect, tasks: Tasks) -> Dialect:
    """As the owner of these tasks is configured."""
    if isinstance(dialect, Configurable):
        return dialect.configured(tasks.plugin_defaults())
    return dialect


async def reminder(tasks: Tasks, thread: str, dialect: Wording | None) -> str:
    if dialect is None or (isinstance(dialect, str) and plain(dialect) == OWN):
        return await tasks.reminder(thread)
    return dialect_of(dialect).reminder(await standing(tasks, thread))


async def standing(tasks: Tasks, thread: str) -> Standing:
    found = await tasks.notices(thread, ("unread", "leased"))
    untold = [notice.task for notice in found if notice.body is None]
    ended = {(task.id, task.run.number) for task in untold}
    active = await tasks.list(thread, ACTIVE, limit=MOST)
    return Standing(
        active=[task for task in reversed(active) if (task.id, task.run.number) not in ended],
        untold=untold,
        parked=await tasks.count_notices(thread, ("parked",)),
        now=tasks.now(),
    )
