"""Agents that are Python objects in this process: a loop of one's own, or a Pydantic AI agent."""

from __future__ import annotations

from meantime.integrations.python_agent import PythonAgent

from .loop_conversation import Conversation, TryAgain
from .session_host import PythonSessionHost

__all__ = ["Conversation", "PythonAgent", "PythonHost", "PythonSessionHost", "TryAgain", "host"]

PythonHost = PythonSessionHost  # its former name
host = PythonSessionHost
