"""An agent that asks, for a daemon and for an owner in the test's own process."""

from __future__ import annotations

from meantime.integrations.loops import Conversation


async def colour(talk: Conversation) -> str:
    reply = await talk.ask("Which colour?", "red", "green")
    return f"It is {reply.choices[0]}."
