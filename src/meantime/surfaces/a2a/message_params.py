"""The params of A2A's methods. Clients may send fields that are not known here."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from meantime.kernel.payloads import as_text

from .rpc_messages import CONTENT_TYPE, INVALID_PARAMS, RpcRefusal

MOST_PARTS = 1_000
Text = Annotated[str, Meta(max_length=4_096)]
PageSize = Annotated[int, Meta(ge=0, le=100)]
HistoryLength = Annotated[int, Meta(ge=0)]


class A2aParams(Struct, frozen=True, rename="camel", omit_defaults=True):
    pass


class PushAuthentication(A2aParams, frozen=True):
    scheme: Text = ""
    credentials: Text = ""


class PushConfig(A2aParams, frozen=True):
    url: Text = ""
    id: Text = ""
    task_id: Text = ""
    token: Text = ""
    authentication: PushAuthentication | None = None


class SentMessage(A2aParams, frozen=True):
    message_id: Text
    parts: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_PARTS)]
    role: str = "ROLE_USER"
    context_id: Text = ""
    task_id: Text = ""

    @property
    def text(self) -> str:
        said = "\n".join([_text(part) for part in self.parts])
        if self.role != "ROLE_USER":
            raise RpcRefusal(INVALID_PARAMS, "A message to an agent has the role ROLE_USER.")
        if not said.strip():
            raise RpcRefusal(INVALID_PARAMS, "The message has no text.", 'Send parts: [{"text": "…"}].')
        return said


def _text(part: dict[str, Any]) -> str:
    if isinstance(part.get("text"), str):
        return part["text"]
    if "data" in part:
        return as_text(part["data"])
    kind = next((name for name in ("raw", "url") if name in part), "other")
    raise RpcRefusal(CONTENT_TYPE, f"Parts of the kind {kind!r} are not supported.", "Send texts.")


class SendConfiguration(A2aParams, frozen=True):
    return_immediately: bool = False
    history_length: HistoryLength | None = None
    task_push_notification_config: PushConfig | None = None


class SendParams(A2aParams, frozen=True):
    message: SentMessage
    configuration: SendConfiguration = SendConfiguration()


class A2aTaskParams(A2aParams, frozen=True):
    id: Text
    history_length: HistoryLength | None = None


class ListParams(A2aParams, frozen=True):
    context_id: Text = ""
    status: Text = ""
    page_size: PageSize = 0
    page_token: Text = ""
    history_length: HistoryLength | None = None
    include_artifacts: bool = False


class PushParams(A2aParams, frozen=True):
    task_id: Text
    id: Text = ""
