"""Checkpoints of LangGraph in a file that only grows: whole after a crash, copied by a fork.

A file is one session. Each step of a graph adds what is new in it.
"""

# LangGraph's types are not complete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
from langchain.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from msgspec import Struct

from meantime.integrations.agent_host.append_log import AppendLog

SESSION = "session"  # the thread's id in every file, so that a copy is another session
CONFIG: RunnableConfig = {"configurable": {"thread_id": SESSION, "checkpoint_ns": ""}}
Typed: TypeAlias = tuple[str, bytes]  # a value as LangGraph's serializer writes it
_encode = msgspec.json.Encoder().encode


class Step(Struct, frozen=True, tag="step"):
    namespace: str
    id: str
    checkpoint: Typed
    metadata: Typed
    parent: str | None
    blobs: list[tuple[str, str | int | float, Typed]]  # channel, version, value


class StepWrite(Struct, frozen=True, tag="write"):
    namespace: str
    id: str  # of the checkpoint
    task: str
    index: int
    channel: str
    value: Typed
    path: str


class CheckpointLog(InMemorySaver):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._log = AppendLog(path)
        for record in _records(self._log):
            self._take(record)

    def _take(self, record: Step | StepWrite) -> None:
        if isinstance(record, StepWrite):
            kept = self.writes[(SESSION, record.namespace, record.id)]
            kept[(record.task, record.index)] = (record.task, record.channel, record.value, record.path)
            return
        for channel, version, value in record.blobs:
            self.blobs[(SESSION, record.namespace, channel, version)] = value
        step = (record.checkpoint, record.metadata, record.parent)
        self.storage[SESSION][record.namespace][record.id] = step

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        kept = super().put(config, checkpoint, metadata, new_versions)
        namespace, id = _place(config)[0], checkpoint["id"]
        blobs = [
            (channel, version, self.blobs[(SESSION, namespace, channel, version)])
            for channel, version in new_versions.items()
        ]
        self._log.append(_encode(Step(namespace, id, *self.storage[SESSION][namespace][id], blobs)))
        return kept

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        namespace, id = _place(config)
        before = dict(self.writes[(SESSION, namespace, id)])
        super().put_writes(config, writes, task_id, task_path)
        after = self.writes[(SESSION, namespace, id)]
        fresh = [
            StepWrite(namespace, id, task, index, value[1], value[2], value[3])
            for (task, index), value in after.items()
            if before.get((task, index)) != value
        ]
        if fresh:
            self._log.append(*map(_encode, fresh))

    def messages(self) -> list[AnyMessage]:
        """The conversation. deepagents keep only what was added to it since the last whole one."""
        kept = self.get_tuple(CONFIG)
        if kept is None:
            return []
        whole = kept.checkpoint["channel_values"].get("messages")
        if whole is not None:
            return list(getattr(whole, "value", whole))
        history = self.get_delta_channel_history(config=kept.config, channels=["messages"])["messages"]
        seed: Any = history.get("seed")
        found: Any = getattr(seed, "value", seed) or []
        for _, _, added in history["writes"]:
            found = add_messages(found, added)
        return found

    def sync(self) -> None:
        if self._log.path.exists():
            self._log.sync()

    def compact(self) -> None:
        """Leaves out what no later step needs: values of a channel that the last checkpoint has whole."""
        newest = {namespace: max(steps) for namespace, steps in self.storage[SESSION].items() if steps}
        whole: dict[str, dict[str, Any]] = {}
        for namespace, id in newest.items():
            versions = self.serde.loads_typed(self.storage[SESSION][namespace][id][0])["channel_versions"]
            whole[namespace] = {
                channel: version
                for channel, version in versions.items()
                if self.blobs.get((SESSION, namespace, channel, version), ("empty", b""))[0] != "empty"
            }
        for _, namespace, channel, version in list(self.blobs):
            if whole[namespace].get(channel, version) != version:
                del self.blobs[(SESSION, namespace, channel, version)]
        for (_, namespace, id), writes in self.writes.items():
            for key, value in list(writes.items()):
                if id != newest[namespace] and value[1] in whole[namespace]:
                    del writes[key]
        spare = self._log.path.with_suffix(".new")
        spare.unlink(missing_ok=True)
        AppendLog(spare).append(*map(_encode, self._kept()))
        os.replace(spare, self._log.path)

    def _kept(self) -> Iterable[Step | StepWrite]:
        blobs: dict[str, list[Any]] = {}
        for (_, namespace, channel, version), value in self.blobs.items():
            blobs.setdefault(namespace, []).append((channel, version, value))
        for namespace, steps in self.storage[SESSION].items():
            for id, step in steps.items():
                yield Step(namespace, id, *step, blobs.pop(namespace, []))
        for (_, namespace, id), writes in self.writes.items():
            for (task, index), (_, channel, value, path) in writes.items():
                yield StepWrite(namespace, id, task, index, channel, value, path)


def copied(path: Path, copy: Path) -> None:
    """All that was said until now, from a session that may be at work."""
    copy.touch(0o600)
    records = list(_records(AppendLog(path)))
    if records:
        AppendLog(copy).append(*map(_encode, records))


def _records(log: AppendLog) -> Iterable[Step | StepWrite]:
    return log.readable(cast("type[Step | StepWrite]", Step | StepWrite))


def _place(config: RunnableConfig) -> tuple[str, str]:
    """The namespace and the checkpoint."""
    given = config.get("configurable", {})
    return given.get("checkpoint_ns", ""), given.get("checkpoint_id", "")
