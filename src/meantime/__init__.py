"""Meantime runs an agent's slow work in the background: hand it off, keep talking, be told once, in order."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # to load `typing` takes 2 ms, and every verb of the command line loads this file
if TYPE_CHECKING:
    from typing import Any

    from .app.meantime import Meantime
    from .conversation.handle import Handle
    from .conversation.log import Log
    from .conversation.loop import Loop
    from .conversation.transcript import Transcript
    from .conversation.turn import Turn
    from .dialects import dialect
    from .integrations.mcp.servers import HttpServer, StdioServer
    from .integrations.opencode.opencode_host import OpenCodeHost
    from .integrations.python_agent import PythonAgent
    from .kernel.errors import (
        AlreadyAnswered,
        Ambiguous,
        Closed,
        Degraded,
        Disconnected,
        Duplicate,
        InvalidInput,
        LeaseLost,
        LedgerBusy,
        LedgerDamaged,
        LedgerError,
        LedgerTooNew,
        LimitReached,
        MeantimeError,
        NotFound,
        NotInWork,
        NotResumable,
        Refused,
        RetryNotSupported,
        StillRunning,
        TaskCancelled,
        TaskEnded,
        TaskFailed,
        TaskLost,
        TaskTimedOut,
    )
    from .kernel.event_notices import NoticeRate
    from .kernel.lifecycle import Status
    from .kernel.limits import Limits, Retention
    from .kernel.model import (
        Cancelled,
        Chunk,
        Completed,
        Failed,
        InlineLimits,
        Lost,
        Output,
        Progress,
        Run,
        Task,
        TimedOut,
        Work,
    )
    from .kernel.notices import Message, Notice, NoticePage, Part
    from .kernel.schedules import Schedule
    from .kernel.wake_budget import WakeBudget
    from .kernel.watches import Watch
    from .kernel.work import Agent, Call, Tool, ToolInfo
    from .ports.dialect import Dialect, Said
    from .ports.host import Delivery, Host
    from .ports.runner import Context, Stopped, current
    from .runners.background_function import background
    from .runners.shell.shell_work import ProcessLimits, Shell
    from .runtime.settings import Settings
    from .surfaces.http.http_door import HttpDoor
    from .thread import Batch, Thread
    from .toolset.toolset import Toolset

_HOMES = {
    "thread": "Batch Thread",
    "app.meantime": "Meantime",
    "dialects": "dialect",
    "conversation.handle": "Handle",
    "integrations.python_agent": "PythonAgent",
    "integrations.mcp.servers": "HttpServer StdioServer",
    "integrations.opencode.opencode_host": "OpenCodeHost",
    "conversation.transcript": "Transcript",
    "conversation.turn": "Turn",
    "ports.runner": "Context Stopped current",
    "kernel.errors": (
        "AlreadyAnswered Ambiguous Closed Degraded Disconnected Duplicate InvalidInput LeaseLost LedgerBusy "
        "LedgerDamaged LedgerError LedgerTooNew LimitReached MeantimeError NotFound NotInWork NotResumable "
        "Refused RetryNotSupported StillRunning TaskCancelled TaskEnded TaskFailed TaskLost TaskTimedOut"
    ),
    "kernel.event_notices": "NoticeRate",
    "kernel.lifecycle": "Status",
    "kernel.limits": "Limits Retention",
    "kernel.model": (
        "Cancelled Chunk Completed Failed InlineLimits Lost Output Progress Run Task TimedOut Work"
    ),
    "kernel.notices": "Message Notice NoticePage Part",
    "kernel.schedules": "Schedule",
    "kernel.wake_budget": "WakeBudget",
    "kernel.watches": "Watch",
    "kernel.work": "Agent Call Tool ToolInfo",
    "conversation.log": "Log",
    "conversation.loop": "Loop",
    "ports.dialect": "Dialect Said",
    "ports.host": "Delivery Host",
    "runners.background_function": "background",
    "runners.shell.shell_work": "ProcessLimits Shell",
    "runtime.settings": "Settings",
    "toolset.toolset": "Toolset",
    "surfaces.http.http_door": "HttpDoor",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AlreadyAnswered",
    "Ambiguous",
    "Batch",
    "Call",
    "Cancelled",
    "Chunk",
    "Closed",
    "Completed",
    "Context",
    "Degraded",
    "Delivery",
    "Dialect",
    "Disconnected",
    "Duplicate",
    "Failed",
    "Handle",
    "Host",
    "HttpDoor",
    "HttpServer",
    "InlineLimits",
    "InvalidInput",
    "LeaseLost",
    "LedgerBusy",
    "LedgerDamaged",
    "LedgerError",
    "LedgerTooNew",
    "LimitReached",
    "Limits",
    "Log",
    "Loop",
    "Lost",
    "Meantime",
    "MeantimeError",
    "Message",
    "NotFound",
    "NotInWork",
    "NotResumable",
    "Notice",
    "NoticePage",
    "NoticeRate",
    "OpenCodeHost",
    "Output",
    "Part",
    "ProcessLimits",
    "Progress",
    "PythonAgent",
    "Refused",
    "Retention",
    "RetryNotSupported",
    "Run",
    "Said",
    "Schedule",
    "Settings",
    "Shell",
    "Status",
    "StdioServer",
    "StillRunning",
    "Stopped",
    "Task",
    "TaskCancelled",
    "TaskEnded",
    "TaskFailed",
    "TaskLost",
    "TaskTimedOut",
    "Thread",
    "TimedOut",
    "Tool",
    "ToolInfo",
    "Toolset",
    "Transcript",
    "Turn",
    "WakeBudget",
    "Watch",
    "Work",
    "background",
    "current",
    "dialect",
]


NO_WINDOWS = (
    "Meantime does not run on Windows itself. Install it in WSL 2, where it is on Linux: "
    "run `wsl --install` in PowerShell, then `pip install meantime` in the Linux terminal."
)


def __getattr__(name: str) -> Any:
    """Names are loaded when they are first used, so that `import meantime` costs next to nothing."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'meantime' has no attribute {name!r}")
    if sys.platform == "win32":
        raise ImportError(NO_WINDOWS)
    import importlib

    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
