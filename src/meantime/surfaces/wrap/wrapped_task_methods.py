"""tasks/get and its like for calls of a wrapped server that became tasks here. A server's own tasks are its
own: requests about them are passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from meantime.kernel.errors import MeantimeError
from meantime.kernel.lifecycle import ACTIVE, ENDED
from meantime.kernel.model import Completed, Task
from meantime.kernel.notices import notice_id
from meantime.ports.event_loop import BackgroundTasks
from meantime.surfaces.mcp import mcp_tasks
from meantime.surfaces.mcp.elicitation import answer_of

from .raw_messages import ENVELOPE, INVALID_PARAMS, NOTHING, RawMessage, parts, raw, text, value

if TYPE_CHECKING:
    from .background_calls import BackgroundCalls
    from .host_session import HostSession
    from .wrap_hello import WrapParts

GET, RESULT, CANCEL, UPDATE, LIST = (
    f"tasks/{name}" for name in ("get", "result", "cancel", "update", "list")
)
METHODS = (GET, RESULT, CANCEL, UPDATE, LIST)
MOST_WAITING = 1_000  # of these requests at once
LISTED = 50
LOOK = 20.0  # seconds of one wait for a result
MOST_KEPT, MOST_KEPT_BYTES = (
    100,
    32 << 20,
)  # results as they were; of others, the ledger's


class KeptResults:
    """Results as the server wrote them: the ledger leaves out pictures and sounds."""

    def __init__(self) -> None:
        self._results: dict[str, Raw] = {}
        self._bytes = 0

    def keep(self, task: str, result: Raw) -> None:
        self._results[task] = result
        self._bytes += len(bytes(result))
        while self._results and (len(self._results) > MOST_KEPT or self._bytes > MOST_KEPT_BYTES):
            oldest = self._results.pop(next(iter(self._results)))
            self._bytes -= len(bytes(oldest))

    def get(self, task: str) -> Raw | None:
        return self._results.get(task)


class WrappedTaskMethods:
    def __init__(self, session: HostSession, shared: WrapParts, calls: BackgroundCalls) -> None:
        self._session = session
        self._tasks = shared.tasks
        self._calls = calls
        self._beside = BackgroundTasks()

    def close(self) -> None:
        self._beside.cancel()

    def take(self, message: RawMessage) -> bool:
        """False: it is the server's."""
        if message.method not in METHODS or len(self._beside) >= MOST_WAITING:
            return False
        is_modern = ENVELOPE in parts(parts(message.params).get("_meta", NOTHING))
        if (is_modern and message.method in (RESULT, LIST)) or (not is_modern and message.method == UPDATE):
            return False
        if message.method == LIST:
            self._beside.start(self._list(message))
            return True
        id = text(parts(message.params).get("taskId"))
        if not mcp_tasks.is_made_here(id):
            return False
        self._beside.start(self._serve(message, id, is_modern))
        return True

    async def _serve(self, message: RawMessage, id: str, is_modern: bool) -> None:
        thread = self._session.conversations.of(message.params)
        try:
            task = await self._tasks.get(id, thread)
        except MeantimeError:
            task = None
        if task is None or not mcp_tasks.is_ours(task, id):
            self._session.pass_on(message)
            return
        self._calls.inbox(thread).follows(id)
        try:
            found = await self._answer(message, task, is_modern)
        except MeantimeError as problem:
            self._session.refuse(message.id, f"{problem.message} {problem.hint}".strip())
            return
        if found is None:
            self._session.refuse(message.id, f"The task has ended: it is {task.status}.", INVALID_PARAMS)
        else:
            whole = {"resultType": "complete", **found} if is_modern else found
            self._session.reply(message.id, raw(whole))

    async def _answer(self, message: RawMessage, task: Task, is_modern: bool) -> dict[str, Any] | None:
        """None: it is too late for that."""
        if message.method == RESULT:
            return await self._result(task)
        if message.method == CANCEL:
            return await self._cancel(task, is_modern)
        if message.method == UPDATE:
            return await self._update(message, task)
        if not is_modern:
            return mcp_tasks.state_2025(task)
        found = await mcp_tasks.whole_state(self._tasks, task)
        if "result" in found:
            found["result"] = self._kept(task) or found["result"]
        self._gave(task)
        return found

    async def _result(self, task: Task) -> dict[str, Any]:
        inbox = self._calls.inbox(task.thread)
        while not task.ended:
            (task,) = await self._tasks.wait([task.id], task.thread, timeout=LOOK)
            inbox.follows(task.id)
        found: dict[str, Any] = {**parts(self._kept(task) or NOTHING)} or await mcp_tasks.result(
            self._tasks, task
        )
        self._gave(task)
        meta = parts(found["_meta"]) if isinstance(found.get("_meta"), msgspec.Raw) else {}
        return {**found, "_meta": {**meta, mcp_tasks.RELATED: {"taskId": task.id}}}

    async def _cancel(self, task: Task, is_modern: bool) -> dict[str, Any] | None:
        if not task.ended:
            reason = "cancelled through MCP"
            task = (await self._tasks.cancel(task.id, task.thread, by="agent", reason=reason)).task
        elif not is_modern:
            return None
        return {} if is_modern else mcp_tasks.state_2025(task)

    async def _update(self, message: RawMessage, task: Task) -> dict[str, Any]:
        """An answer to a question that is not open any more is passed over: the client may be late."""
        given: Any = value(parts(message.params).get("inputResponses")) or {}
        question = task.question
        if question is not None and isinstance(given, dict) and question.id in given:
            said = answer_of(question, given[question.id])
            if said is not None:
                await self._tasks.answer(task.id, task.thread, said, by="user")
        return {}

    async def _list(self, message: RawMessage) -> None:
        """Ours stand on the server's first page."""
        whole: dict[str, Any] = {}
        if self._session.introduction.server_has_tasks:
            said = await self._session.ask(LIST, message.params)
            if isinstance(said, str) or said.error:
                self._session.pass_on(message)
                return
            whole = dict(parts(said.result))
        own: list[Any] = []
        if "cursor" not in parts(message.params):
            thread = self._session.conversations.of(message.params)
            tasks = await self._tasks.list(thread, ACTIVE | ENDED, limit=LISTED)
            own = [mcp_tasks.state_2025(task) for task in tasks if mcp_tasks.MARK in task.meta]
        theirs: Any = value(whole.get("tasks"))
        self._session.reply(message.id, raw({**whole, "tasks": own + (theirs or [])}))

    def _kept(self, task: Task) -> Raw | None:
        return self._calls.kept.get(task.id) if isinstance(task.outcome, Completed) else None

    def _gave(self, task: Task) -> None:
        """The client has this ending: the notice of it need not be told."""
        if task.ended:
            inbox = self._calls.inbox(task.thread)
            inbox.aside(inbox.settle_read(task.id, notice_id(task.id, task.run.number)))
