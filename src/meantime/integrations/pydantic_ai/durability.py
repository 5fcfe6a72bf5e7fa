"""Pydantic AI's interface for durable engines, on our ledger: model requests and tool calls of an agent are
steps of a run that can be killed, and repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    BoundDurableOperation,
    CacheIdentity,
    CapabilityOperationId,
    DurabilityEngineSpec,
    DurableOperation,
    DurableOperationId,
    JournalCallableOperationBackend,
    ModelCompactMessagesId,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    conversation_id_from_run_id,
)
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.models import Model
from pydantic_ai.tools import AgentDepsT, RunContext
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import to_json

from meantime.kernel.errors import TaskEnded, TaskLost
from meantime.thread import Thread

from .step_journal import JOURNAL, DurableStep, StepJournal

P = TypeVar("P")
W = TypeVar("W")
R = TypeVar("R")
TOOL_KEY = "meantime"  # of a tool's metadata
AGAIN = "idempotent"
FIND_OUT = "It was not made again. Find out what it did before you repeat it."
# The rest is repeated with the run: it reads, validates or shows, and has no effect of its own.
RECORDED = (ModelRequestId, ModelCompactMessagesId, ToolsetCallToolId, CapabilityOperationId)


@contextmanager
def durable_run(thread: Thread, key: str) -> Generator[None]:
    """Agents with `Durability` that run within are recorded, step by step. After a crash, do the same again
    with the same key: what is recorded is not executed again.

    thread: the steps are tasks of this thread, and nobody is told of them. Use one without a conversation.
    key: names the run; another run has another key.
    """
    token = JOURNAL.set(StepJournal(thread, key))
    try:
        yield
    finally:
        JOURNAL.reset(token)


class Durability(BaseDurabilityCapability[AgentDepsT]):
    """For `Agent(…, capabilities=[Durability()])`. Outside of `durable_run` it changes nothing.

    A model request may be repeated after a crash, as long as its answer is not on record. A tool is called at
    most once: if nobody knows how its call ended, the model is told so. With
    `metadata={"meantime": {"retry": "idempotent"}}` a tool may be called again, and with
    `metadata={"meantime": False}` its calls are not recorded.

    models: more models, by the names that `agent.run(model=…)` takes.
    name: of the agent, in the names of its steps; by default the agent's own.
    """

    engine_spec: ClassVar = DurabilityEngineSpec(
        engine_name="Meantime",
        durable_unit_noun="step",
        durable_container_noun="durable_run",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
        unsupported_runtime_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
        tool_config_key=TOOL_KEY,
    )

    def __init__(self, *, models: Mapping[str, Model] | None = None, name: str | None = None) -> None:
        super().__init__(models=models, name=name)

    @property
    def in_durable_context(self) -> bool:
        return JOURNAL.get() is not None

    def get_durable_operation_backend(self) -> LedgerBackend:
        return LedgerBackend(agent_name=self.name, default_model_id=self.default_model_id, config=CONFIG)

    def get_default_run_id(self) -> str | None:
        journal = JOURNAL.get()
        return None if journal is None else journal.next_run()

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None


class LedgerBackend(JournalCallableOperationBackend[str]):
    """Each operation that has an effect is one step; its config is its retry policy."""

    def bind(self, operation: DurableOperation[P, W, R]) -> BoundDurableOperation[P, W, R]:
        return super().bind(_identified(operation))

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: str,
    ) -> object:
        journal = JOURNAL.get()
        if journal is None or not isinstance(operation_id, RECORDED):
            return await body()
        run, call, given = cast("tuple[str, str, bytes]", cache_key)
        try:
            return await journal.perform(DurableStep(run, name, call, given, config == AGAIN), body)
        except TaskEnded as problem:
            if isinstance(operation_id, ToolsetCallToolId):
                raise ToolFailed(_not_repeated(name.rpartition(":")[2], problem)) from problem
            raise


class _StepIdentity(CacheIdentity[Any]):
    """Which step it is: the agent's run, the model's tool call, and the input. For a model request the input
    is the prompt alone: instructions may have the time of day in them."""

    def project(self, params: Any) -> tuple[str, str, bytes]:
        context: RunContext[Any] | None = getattr(params, "ctx", None) or getattr(params, "run_context", None)
        given = getattr(params, "tool_args", getattr(params, "arguments", None))
        if given is None and context is not None:
            given = context.prompt
        run = (context and context.run_id) or ""
        call = (context and context.tool_call_id) or ""
        return run, call, to_json(given, fallback=str)


def _identified(operation: DurableOperation[P, W, R]) -> DurableOperation[P, W, R]:
    return replace(operation, cache_identity=_StepIdentity())


def _retry_of(operation_id: DurableOperationId, tool: object | None, tool_name: str) -> str | Literal[False]:
    given: Any = {}
    if isinstance(tool, ToolsetTool):
        given = (tool.tool_def.metadata or {}).get(TOOL_KEY, {})
    if given is False:
        return False
    if given in ({}, {"retry": ""}, {"retry": AGAIN}):
        return str(given.get("retry", ""))
    raise UserError(
        f"The tool {tool_name!r} has {TOOL_KEY}={given!r} in its metadata. "
        f'Use {{"retry": "{AGAIN}"}}, or False for a tool whose calls are not recorded.'
    )


def _not_repeated(tool: str, problem: TaskEnded) -> str:
    """The text for the model, about a call that was begun before a crash."""
    if isinstance(problem, TaskLost):
        return f"Nobody knows whether this call of {tool} had an effect: its process died. {FIND_OUT}"
    return f"{problem.message} {FIND_OUT}"


CONFIG = RoleBasedOperationConfig[str](model=AGAIN, event="", capability="", tool="", resolve_tool=_retry_of)
