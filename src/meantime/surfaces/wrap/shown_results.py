"""Results of a wrapped server as its host sees them: lists and introductions have something of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from .host_notifications import with_own_subscription
from .open_requests import OpenRequest
from .protocol_versions import LISTEN
from .task_offers import DISCOVER, INITIALIZE
from .tool_answers import listed

if TYPE_CHECKING:
    from .host_session import HostSession


def shown_result(session: HostSession, opened: OpenRequest, result: Raw) -> Raw:
    """Byte for byte the server's own, but for the few that must say what the wrap does."""
    if opened.method == "tools/list":
        keeps = opened.declares_tasks and not session.conversations.has_hooks
        offers = session.introduction.offers_tasks
        return listed(result, session.threshold, keeps_schema=keeps, offers_tasks=offers)
    if opened.method == LISTEN:
        return with_own_subscription(result, {opened.number: opened})
    if opened.method in (INITIALIZE, DISCOVER):
        return session.introduction.shown(opened.method, result, may_offer=session.may_offer_tasks)
    return result
