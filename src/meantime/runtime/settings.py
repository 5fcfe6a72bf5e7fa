"""The runtime's settings, given once, at the start. Every field has a default that suits one person."""

from __future__ import annotations

from msgspec import Struct

from meantime.kernel.argument_checks import check_choice
from meantime.kernel.limits import Limits, PluginDefaults, Retention
from meantime.kernel.model import InlineLimits
from meantime.kernel.wake_budget import WakeBudget


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of `Meantime.open`. Every field has a default that suits one person."""

    limits: Limits = Limits()
    default_timeout: float = -1  # seconds for a start that names none; -1 is none
    max_timeout: float = -1  # no start gets more
    inline: InlineLimits = InlineLimits()
    inline_by_name: dict[str, InlineLimits] = {}  # by the name of the work: limits of its own
    retention: Retention = Retention()
    stop_grace: float = 5.0  # seconds between asking a run to stop and asking again, harder
    stop_deadline: float = 10.0  # seconds after which a run that will not stop is left behind
    parks_after: int = 5  # failed deliveries after which a notice is parked
    wakes: WakeBudget = WakeBudget()  # how often a thread is woken by what it started when it was woken
    reconcile_every: float = 5.0  # seconds: the longest a missed wake can last
    progress_every: float = 0.25  # seconds between writes of one run's progress
    upkeep_every: float = 3600.0
    on_close: str = "keep"  # what a close does to commands that outlive us: "keep" or "stop" them
    output_head: int = 1 << 20  # bytes at the beginning of a command's stdout and stderr that are kept
    output_ring: int = 4 << 20  # bytes at the end of each that are kept
    umask: int = -1  # of the files that commands make; -1 is as this process has it
    max_threads: int = 256  # worker threads for sync functions, those left behind included
    executor_lease: float = 60.0  # seconds of silence after which a connected process counts as lost
    executor_grace: float = 30.0  # seconds that a lost one has to come back, before its runs are lost
    plugins: PluginDefaults = PluginDefaults()  # for registries that are given no config
    max_wait: float = 600.0  # the longest that `output(wait=…)` waits


def check_on_close(on_close: str) -> str:
    return check_choice(on_close, "on_close", ("keep", "stop"))
