"""What a model reads: each tool in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping

INSTRUCTIONS = (
    "Meantime runs slow work in the background. Hand off anything that may take longer than a few seconds "
    "with {start}, and go on. You are told of every ending: the notices come by themselves, after the result "
    "of whatever tool of this server you call next. Never poll, and never start the same work again to see "
    "how it is. Call wait only when nothing else is left to do."
)
START = (
    "Starts a command in the background and returns its task id at once. It goes on over restarts of yours. "
    "You are told when it ends, with a later tool result: do not poll."
)
START_TOOL = (
    "Starts a registered tool in the background and returns its task id at once. You are told when it ends, "
    "with a later tool result: do not poll."
)
START_AGENT = (
    "Starts an agent in the background, in a conversation of its own, and returns its task id at once. You "
    "are told when it ends, with a later tool result: do not poll."
)
RESUME = (
    "Tells an agent whose task has ended something more, in its own conversation, and returns at once. You "
    "are told when it ends again."
)
OUTPUT = "What a task has said so far, or its result. It never waits. Not for polling: you are told."
LIST = "This conversation's tasks, newest first. Not for polling: you are told when a task ends."
WAIT = (
    "Blocks until tasks have ended, for at most {seconds:g} seconds. Only when nothing else is left to do; "
    "you are told of endings without it."
)
CANCEL = "Stops a task, with everything that it started, and says how it ended."
SEND = "Writes to the stdin of a running command that was started with stdin: true."
SEND_AGENT = (
    "Says something to a running agent, which hears it in its turn or next; or writes to the stdin of a "
    "running command that was started with stdin: true."
)
ANSWER = (
    "Answers a question that an agent of yours waits with. Permissions are for a person to give; you may "
    "only refuse them."
)
SENT = {
    "steered": "Said: it hears it in its turn.",
    "queued": "Kept: it is what the agent is told next, when this run has ended.",
}

STARTED = "You are told when it ends. Do not poll or wait for it; go on with other work."
STILL = "You are told when they end. Go on with other work, or end your turn."


def start_agent(purposes: Mapping[str, str]) -> str:
    """With a line for each agent that says what it is for."""
    said = {name: " ".join(purpose.split()) for name, purpose in purposes.items()}
    lines = [f"- {name}: {purpose}" for name, purpose in said.items() if purpose]
    return "\n".join([START_AGENT, *lines])
