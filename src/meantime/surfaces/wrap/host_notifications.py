"""Notifications of a wrapped server, as its host gets them: ids and progress tokens are the host's own."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from .open_requests import TOKEN, OpenRequest
from .protocol_versions import SUBSCRIPTION, meta_of, with_meta
from .raw_messages import NOTHING, RawMessage, key, notification, parts

PROGRESS = "notifications/progress"


def for_host(message: RawMessage, open: Mapping[int, OpenRequest]) -> bytes | None:
    """None: the host wants nothing of it. `open` are the host's requests, by their id at the server."""
    if message.method == PROGRESS:
        params = parts(message.params)
        opened = _opened(params.get(TOKEN, NOTHING), open)
        told = opened.progress(params) if opened is not None else None
        return None if told is None else notification(PROGRESS, told)
    return notification(message.method, with_own_subscription(message.params, open))


def with_own_subscription(params: Raw, open: Mapping[int, OpenRequest]) -> Raw:
    """A notification on a stream of changes names the request that opened the stream; so does its end."""
    if SUBSCRIPTION.encode() not in bytes(params):
        return params
    meta = meta_of(params)
    opened = _opened(meta.get(SUBSCRIPTION, NOTHING), open)
    if opened is None or not opened.host_id:
        return params
    return with_meta(params, {**meta, SUBSCRIPTION: opened.host_id})


def _opened(id: Raw, open: Mapping[int, OpenRequest]) -> OpenRequest | None:
    number = key(id)
    return open.get(number) if isinstance(number, int) else None
