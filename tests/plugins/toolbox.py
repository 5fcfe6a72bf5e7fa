"""Plugins whose tools end when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, ClassVar

from tests.waiting import LIMIT, until, until_async

from meantime import Settings, current
from meantime.plugins import RunsInBackground, TaskHandle, TaskResult, TaskStatus

SETTINGS = Settings(stop_grace=0.02, stop_deadline=LIMIT)
DEAF = Settings(stop_grace=0.02, stop_deadline=0.05)  # tools that will not stop are left behind soon


class Gate:
    """A tool waits here. The test hears that it has begun, and lets it go on."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._open = threading.Event()
        self._counting = threading.Lock()
        self.executions = 0

    def open(self) -> None:
        self._open.set()

    def count(self) -> None:
        with self._counting:
            self.executions += 1

    def pass_through(self) -> None:
        self.count()
        self.begun.set()
        assert self._open.wait(LIMIT), "nobody opened the gate"

    def wait_begun(self) -> None:
        assert self.begun.wait(LIMIT), "the tool was never called"


class Files(RunsInBackground):
    """Tools of every kind: quick, slow, polite, failing, async."""

    thresholds: ClassVar = {"slow": 0.01, "polite": 0.01, "slow_async": 0.01, "fails": LIMIT, "never": None}
    background_tools: Any = None

    def __init__(self, name: str = "files", prefix: str = "") -> None:
        self._name = name
        self._prefix = prefix
        self.gate = Gate()
        self.raises: BaseException = ValueError("no such file")
        self.returns: Any = "done"

    @property
    def name(self) -> str:
        return self._name

    def get_executors(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        tools = (
            self.quick,
            self.slow,
            self.polite,
            self.fails,
            self.never,
            self.quick_async,
            self.slow_async,
        )
        return {self._prefix + tool.__name__: tool for tool in tools}

    def quick(self, args: dict[str, Any]) -> Any:
        self.gate.count()
        return args.get("value", self.returns)

    def slow(self, args: dict[str, Any]) -> Any:
        self.gate.pass_through()
        return args.get("value", self.returns)

    def polite(self, args: dict[str, Any]) -> Any:
        """Looks whether it should stop, and then does."""
        self.gate.begun.set()
        current().progress(10)
        until(lambda: current().cancelled, "it is to stop")
        return "half of it"

    def fails(self, args: dict[str, Any]) -> Any:
        raise self.raises

    def never(self, args: dict[str, Any]) -> Any:
        return threading.current_thread()

    async def quick_async(self, args: dict[str, Any]) -> Any:
        return args.get("value", self.returns)

    async def slow_async(self, args: dict[str, Any]) -> Any:
        self.gate.count()
        self.gate.begun.set()
        await until_async(self.gate._open.is_set, "the gate is open")
        return self.returns


class Foreign:
    """A plugin that brings its own background: only the protocol, nothing of ours."""

    name = "foreign"

    def __init__(self) -> None:
        self.gate = Gate()
        self.registered: list[Future[Any]] = []
        self.refuses = False

    def get_executors(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        return {"lookup": self.lookup}

    def lookup(self, args: dict[str, Any]) -> Any:
        self.gate.pass_through()
        return "found"

    def supports_background(self, tool_name: str) -> bool:
        return True

    def get_auto_background_threshold(self, tool_name: str) -> float | None:
        return 0.01

    def register_running_task(self, future: Future[Any], tool_name: str, arguments: dict[str, Any]):
        if self.refuses:
            raise OSError("no room")
        self.registered.append(future)
        return TaskHandle(f"foreign-{len(self.registered)}", self.name, tool_name, datetime.now())

    def start_background(
        self, tool_name: str, arguments: dict[str, Any], timeout_seconds: float | None = None
    ) -> TaskHandle:
        return TaskHandle("foreign-0", self.name, tool_name, datetime.now())

    def get_status(self, task_id: str) -> TaskStatus:
        return TaskStatus.RUNNING

    def get_result(self, task_id: str, wait: bool = False) -> TaskResult:
        return TaskResult(task_id, TaskStatus.RUNNING)

    def cancel(self, task_id: str) -> bool:
        return False

    def list_tasks(self) -> list[TaskHandle]:
        return [
            TaskHandle(f"foreign-{number}", self.name, "lookup", datetime.now())
            for number, future in enumerate(self.registered)
            if not future.done()
        ]
