"""The owner's end of `meantime mcp --wrap`, joined: hosts on one side, servers on the other."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from meantime.integrations.mcp.raw_servers import RawServers
from meantime.kernel.errors import InvalidInput
from meantime.ports.wrapped_server import WrappedServers
from meantime.runtime.runtime import Runtime
from meantime.surfaces.hooks.shown_notices import has_hooks
from meantime.surfaces.wrap.learned_durations import LearnedDurations
from meantime.surfaces.wrap.wrap_hello import WrapParts
from meantime.surfaces.wrap.wrap_listener import WrapListener

from .config_schema import Config

if TYPE_CHECKING:
    from meantime.client.client import Client


def wrapped_servers(config: Config) -> WrappedServers:
    section = config.mcp
    return RawServers(section.servers, section.wrap_threshold, section.wrap_thresholds, section.wrap_learn)


def listener_of(runtime: Runtime | Client, servers: WrappedServers, path: Path) -> WrapListener:
    if not isinstance(runtime, Runtime):
        raise InvalidInput("Only the owner of a ledger serves wraps; this process is connected to one.")
    hooks = partial(has_hooks, path.parent)
    durations = LearnedDurations(runtime.usual.estimates.of)
    return WrapListener(WrapParts(runtime, servers, runtime.waking.unread, hooks, durations), path)
