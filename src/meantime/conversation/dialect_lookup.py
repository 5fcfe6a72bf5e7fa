"""Dialects by their names, for packages below the one that has them; and a thread's reminder in one."""

from __future__ import annotations

import importlib
from collections.abc import Collection
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


async def reminder(
    tasks: Tasks,
    thread: str,
    dialect: Wording | None,
    turn: str | None = None,
    told: Collection[str] = (),
) -> str:
    """turn: one that is open, and told: the ids of its notices, which are left out."""
    if dialect is None or (isinstance(dialect, str) and plain(dialect) == OWN):
        return await tasks.reminder(thread, turn=turn)
    return dialect_of(dialect).reminder(await standing(tasks, thread, told))


async def standing(tasks: Tasks, thread: str, told: Collection[str] = ()) -> Standing:
    found = await tasks.notices(thread, ("unread", "leased"))
    endings = [notice for notice in found if notice.body is None]
    ended = {(notice.task.id, notice.task.run.number) for notice in endings}
    active = await tasks.list(thread, ACTIVE, limit=MOST)
    return Standing(
        active=[task for task in reversed(active) if (task.id, task.run.number) not in ended],
        untold=[notice.task for notice in endings if notice.id not in told],
        parked=await tasks.count_notices(thread, ("parked",)),
        now=tasks.now(),
    )
