"""Every route of the API, in the order of the description."""

from __future__ import annotations

from . import access_routes, schedule_routes, server_routes, task_routes, thread_routes
from .routing import AnyRoute

READS: tuple[AnyRoute, ...] = (
    *task_routes.READS,
    *thread_routes.READS,
    *schedule_routes.READS,
    *server_routes.READS,
    *access_routes.READS,
)
WRITES: tuple[AnyRoute, ...] = (
    *task_routes.WRITES,
    *schedule_routes.WRITES,
    *server_routes.WRITES,
    *access_routes.WRITES,
)
TURNS: tuple[AnyRoute, ...] = thread_routes.TURNS
ROUTES: tuple[AnyRoute, ...] = (*READS, *WRITES, *TURNS)
OPEN_PATHS = frozenset(route.path for route in ROUTES if route.access.open)
