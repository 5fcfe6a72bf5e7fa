"""The content of a session's stored messages: which are there, and which the model was asked with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

IDLE = "idle"


class MessageView:
    """The newest messages of a session, and whether it works now. All of it is as the server says."""

    def __init__(self, messages: Sequence[dict[str, Any]], status: dict[str, Any] | None = None) -> None:
        self.messages = messages
        self.status = status or {"type": IDLE}
        self._places = {message["info"]["id"]: place for place, message in enumerate(messages)}
        self.parts = {part["id"] for message in messages for part in message["parts"]}

    @property
    def is_busy(self) -> bool:
        return self.status["type"] != IDLE

    def has(self, message: str) -> bool:
        return message in self._places

    def marked(self, notice: str) -> Iterable[str]:
        """The messages that tell this notice."""
        for message in self.messages:
            for part in message["parts"]:
                metadata: dict[str, Any] = part.get("metadata") or {}
                if metadata.get("meantime") == {"notice": notice}:
                    yield message["info"]["id"]

    def was_seen(self, message: str) -> bool:
        """Whether the model answered to it. A step of the model names, as its parent, the newest message of
        the user that it was asked with; it is there before the model is asked, and empty until then."""
        place = self._places[message]
        return any(self._places.get(parent, -1) >= place for parent in self._parents())

    def _parents(self) -> Iterable[str]:
        for message in self.messages:
            info = message["info"]
            if info["role"] == "assistant" and (message["parts"] or info["time"].get("completed")):
                yield info.get("parentID", "")

    def after(self, message: str) -> Sequence[dict[str, Any]]:
        """The model's own messages since then."""
        later = self.messages[self._places[message] + 1 :]
        return [each for each in later if each["info"]["role"] == "assistant"]

    @property
    def voice(self) -> dict[str, Any]:
        """The agent and the model that the user spoke to last: a message without them would go to others."""
        for message in reversed(self.messages):
            info = message["info"]
            if info["role"] == "user" and info.get("agent") and info.get("model"):
                model = {name: info["model"].get(name) for name in ("providerID", "modelID")}
                return {"agent": info["agent"], "model": model}
        return {}
