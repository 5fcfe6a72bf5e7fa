"""The conformance suite of a framework's Talk: one small check per sentence of what it promises.

An adapter of your own passes when `await exercise_talk(make)` returns, where `make()` gives a `TalkSite`: an
agent of the framework with a scripted model, and a conversation that is kept. With a test runner, parametrize
over `TALK_CHECKS` and hand each one a fresh site.
"""

from __future__ import annotations

from .talk_site import ModelRequest, TalkFixture, TalkSite, ToolCall, next_step
from .talk_suite import TALK_CHECKS, Check, exercise_talk

__all__ = [
    "TALK_CHECKS",
    "Check",
    "ModelRequest",
    "TalkFixture",
    "TalkSite",
    "ToolCall",
    "exercise_talk",
    "next_step",
]
