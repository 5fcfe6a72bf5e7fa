"""The beginning of a session: what a wrap says of itself, and the parts of the owner that serve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Raw, Struct

from meantime.ports.tasks import Tasks
from meantime.ports.wrapped_server import WrapOrder, WrappedServers

from .learned_durations import LearnedDurations
from .raw_messages import NOTHING
from .repeated_requests import RepeatedRequest


class WrapHello(Struct, frozen=True, kw_only=True):
    """The first line of a wrap."""

    version: str
    order: WrapOrder
    thread: str
    said: bool = False  # somebody has said which thread; otherwise a call may name its own
    by_session: bool = False  # a plugin of ours writes the session into the arguments of each call
    prefix: bool = False  # each word of the order names a server, which all stand behind this wrap
    threshold: float | None = None  # seconds, in place of the configured one
    # With a former daemon: the params of the host's handshake, and what must be asked again after it.
    initialize: Raw = NOTHING
    repeats: tuple[RepeatedRequest, ...] = ()

    def __repr__(self) -> str:
        return f"WrapHello({self.order!r}, {self.thread!r})"


class WrapParts(NamedTuple):
    """Parts that all sessions of an owner share. `unread` counts the notices of a thread; `has_hooks` says
    whether hooks tell it; `durations` of tools are learned where somebody has chosen that."""

    tasks: Tasks
    servers: WrappedServers
    unread: Callable[[str], int]
    has_hooks: Callable[[str], bool]
    durations: LearnedDurations
