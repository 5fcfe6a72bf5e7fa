"""The runtime's settings, given once, at the start. Every field has a default that suits one person."""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Struct

from meantime.kernel.constraints import LIMIT, TIMEOUT, one_of, seconds, whole
from meantime.kernel.event_notices import NoticeRate
from meantime.kernel.limits import Limits, PluginDefaults, Retention
from meantime.kernel.model import InlineLimits
from meantime.kernel.placement import check_places
from meantime.kernel.wake_budget import WakeBudget

ON_CLOSE = one_of("keep", "stop")
_DAY = math.nextafter(86_400.0, 0)  # seconds: a little less
_STOP = seconds(0, _DAY).worded("stop_grace and stop_deadline are seconds, from 0 up to a day.")
_KEPT = whole(0).worded("output_head and output_ring are numbers of bytes, from 0 up.")
_UMASK = whole(-1, 0o777).worded("umask is a mode from 0 to 0o777, or -1 for that of this process.")


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of `Meantime.open`. Every field has a default that suits one person."""

    limits: Limits = Limits()
    default_timeout: float = -1  # seconds for a start that names none; -1 is none
    max_timeout: float = -1  # no start gets more
    inline: InlineLimits = InlineLimits()
    inline_by_name: dict[str, InlineLimits] = {}  # by the name of the work: limits of its own
    retention: Retention = Retention()
    stop_grace: Annotated[float, _STOP] = 5.0  # seconds between asking a run to stop and asking again, harder
    stop_deadline: Annotated[float, _STOP] = 10.0  # seconds until a run that will not stop is left behind
    parks_after: int = 5  # failed deliveries after which a notice is parked
    notices: NoticeRate = NoticeRate()  # how often one task may tell its thread something before it ends
    wakes: WakeBudget = WakeBudget()  # how often a thread is woken by what it started when it was woken
    reconcile_every: float = 5.0  # seconds: the longest a missed wake can last
    progress_every: float = 0.25  # seconds between writes of one run's progress
    upkeep_every: float = 3600.0
    on_close: Annotated[str, ON_CLOSE] = "keep"  # "keep" or "stop" commands that outlive us, when we close
    output_head: Annotated[int, _KEPT] = 1 << 20  # bytes kept of the start of a command's stdout and stderr
    output_ring: Annotated[int, _KEPT] = 4 << 20  # bytes kept of the end of each
    umask: Annotated[int, _UMASK] = -1  # of the files that commands make; -1 is as this process has it
    max_threads: int = 256  # worker threads for sync functions, those left behind included
    executor_lease: float = 60.0  # seconds of silence after which a connected process counts as lost
    executor_grace: float = 30.0  # seconds that a lost one has to come back, before its runs are lost
    worker_lease: float = 30.0  # seconds of silence after which a worker counts as lost
    worker_grace: float = 30.0  # seconds that a lost one has to come back, before its runs are lost
    worker_wait: Annotated[float, TIMEOUT] = 600.0  # seconds that work waits for a worker that can perform it
    worker_attempts: Annotated[int, LIMIT] = 3  # of an idempotent task that may end with their worker
    place: Annotated[dict[str, str], check_places] = {}  # where kinds of work, or names, run; default "here"
    plugins: PluginDefaults = PluginDefaults()  # for registries that are given no config
    max_wait: float = 600.0  # the longest that `output(wait=…)` waits
