"""Options of a start as a caller gave them, checked before anything is asked of them."""

from __future__ import annotations

from typing import Any

from meantime.kernel.argument_checks import check_all, check_choice, check_flag, check_text
from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id
from meantime.kernel.limits import ON_LIMIT
from meantime.kernel.lines import Line
from meantime.kernel.model import InlineLimits
from meantime.kernel.timeouts import check
from meantime.kernel.work import check_meta
from meantime.ports.tasks import Options

MAX_DESCRIPTION = 2_000


def check_options(given: Options) -> Options:
    """The same as plain data, or InvalidInput."""
    return Options(
        timeout=None if given.timeout is None else check(given.timeout),
        description=check_text(given.description, "description", MAX_DESCRIPTION),
        batch=_optional_id(given.batch, "batch"),
        tool_call_id=_optional_id(given.tool_call_id, "tool_call_id"),
        message_id=_optional_id(given.message_id, "message_id"),
        id=_optional_id(given.id, "id"),
        notify=check_flag(given.notify, "notify"),
        retry=check_choice(given.retry, "retry", ("", "idempotent")),
        on_limit=None if given.on_limit is None else check_choice(given.on_limit, "on_limit", ON_LIMIT),
        inline=_inline(given.inline),
        fork=check_flag(given.fork, "fork"),
        fork_of=_optional_id(given.fork_of, "fork_of"),
        context=tuple(check_all(given.context, Line, "context")),
        session=_optional_id(given.session, "session"),
        meta=check_meta(given.meta),
        executor=_optional_id(given.executor, "executor"),
        parent=_optional_id(given.parent, "parent"),
    )


def _optional_id(value: str | None, what: str) -> str | None:
    return None if value is None else check_id(value, what)


def _inline(limits: Any) -> InlineLimits | None:
    if limits is None:
        return None
    good = isinstance(limits, InlineLimits)
    if not good or any(type(most) is not int or most < 0 for most in (limits.max_bytes, limits.max_lines)):
        raise InvalidInput("inline takes InlineLimits(max_bytes, max_lines), whole numbers from 0 up.")
    return limits
