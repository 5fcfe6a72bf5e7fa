"""The common dependencies of all handlers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from meantime.ports.clock import Clock
from meantime.ports.owner import HostCount, Owner
from meantime.ports.tasks import Tasks

from .event_feed import Feed
from .hook_notices import HookNotices
from .http_settings import HttpSettings
from .long_polls import Polls
from .patch_feed import PatchFeed
from .tokens import Tokens


@dataclass(slots=True)
class Dependencies:
    tasks: Tasks
    owner: Owner
    settings: HttpSettings
    clock: Clock
    feed: Feed
    patches: PatchFeed
    polls: Polls
    hooks: HookNotices
    tokens: Tokens
    mcp_hosts: Callable[[], Sequence[HostCount]]  # that MCP serves on this server
    began: float = field(init=False)  # on the monotonic clock
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()
        self.started_at = self.clock.now()
