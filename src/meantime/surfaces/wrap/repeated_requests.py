"""Requests of a host whose effect lasts at the server: subscriptions and the log level. They are repeated to
a server that was started again, which knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Raw, Struct

from .raw_messages import parts, text

LEVEL, SUBSCRIBE, UNSUBSCRIBE = "logging/setLevel", "resources/subscribe", "resources/unsubscribe"
METHODS = (LEVEL, SUBSCRIBE, UNSUBSCRIBE)
MOST = 1_000  # subscriptions of one host; the oldest are forgotten
MOST_BYTES = 16_384  # of the params of one


class RepeatedRequest(Struct, frozen=True):
    method: str
    params: Raw


class RepeatedRequests:
    def __init__(self, given: Iterable[RepeatedRequest] = ()) -> None:
        self._level = Raw()
        self._subscribed: dict[str, Raw] = {}  # by the URI
        for one in given:
            self.note(one.method, one.params)

    def __iter__(self) -> Iterator[tuple[str, Raw]]:
        if self._level:
            yield LEVEL, self._level
        for params in self._subscribed.values():
            yield SUBSCRIBE, params

    @property
    def has_subscriptions(self) -> bool:
        return bool(self._subscribed)

    def note(self, method: str, params: Raw) -> None:
        """The server has done what was asked."""
        if method == LEVEL and len(bytes(params)) <= MOST_BYTES:
            self._level = params.copy()
            return
        uri = text(parts(params).get("uri"))
        self._subscribed.pop(uri, None)
        if method == SUBSCRIBE and uri and len(bytes(params)) <= MOST_BYTES:
            self._subscribed[uri] = params.copy()
            if len(self._subscribed) > MOST:
                del self._subscribed[next(iter(self._subscribed))]
