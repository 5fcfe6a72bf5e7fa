"""The actions on a task: which are legal now, why the others are not, and the command line of each.

This is the one place that says so; `tests/runtime/test_actions.py` compares it with what the verbs accept.
A legal action can still be refused: the task may move on, and only its host knows whether a session is there.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from .ids import display
from .lifecycle import ENDED, Status
from .model import Task
from .notices import left_running


class Action(Struct, frozen=True):
    """One action on one task."""

    name: str
    legal: bool
    reason: str  # why it is not legal; empty where it is
    destroys: bool  # it cannot be taken back: ask before
    cli: str  # the command that does it; capitals are for the caller to fill in


class ActionFacts(Struct, frozen=True, omit_defaults=True):
    """The facts about a task that are not in the task itself."""

    resumes: bool = False  # its kind of work can be taken up again in its session
    talks: bool = False  # it holds a conversation
    takes_input: bool = False  # it can be sent something while it runs
    session: str | None = None  # where it works, even before that is on record
    parked: tuple[str, ...] = ()  # the ids of its notices that are parked
    inline: bool = False  # a call that somebody waits for: it is not recorded yet


NO_FACTS = ActionFacts()
_INLINE = "It is a call that runs inline: promote it first."


def actions(task: Task, facts: ActionFacts = NO_FACTS) -> tuple[Action, ...]:
    """Every action there is, in the order in which a person looks for them."""
    id = display(task.id)
    notices = " ".join(facts.parked) or "NOTICE"
    return tuple(
        Action(name, not reason, reason, name in ("cancel", "purge"), f"meantime {cli}")
        for name, reason, cli in (
            ("cancel", _cancel(task, facts), f"cancel {id}"),
            ("answer", _answer(task, facts), f"answer {id} TEXT"),
            ("resume", _resume(task, facts), f"resume {id} TEXT"),
            ("fork", _fork(task, facts), f"fork {id} TEXT"),
            ("send", _send(task, facts), f"send {id} TEXT"),
            ("promote", "" if facts.inline else "It is a task already.", f"promote {id}"),
            ("unpark", _unpark(facts), f"unpark {task.thread} {notices}"),
            ("clear", _clear(task, facts), f"clear {id}"),
            ("purge", _needs_ending(task, facts), f"prune {id}"),
        )
    )


def _cancel(task: Task, facts: ActionFacts) -> str:
    if facts.inline:
        return _INLINE
    if task.status is Status.CANCELLING:
        return "It is being cancelled already."
    if task.status in ENDED and not (task.outcome is not None and left_running(task.outcome)):
        return f"It has ended: {_word(task)}."
    return ""


def _answer(task: Task, facts: ActionFacts) -> str:
    if facts.inline:
        return _INLINE
    if task.status is not Status.WAITING or task.question is None:
        return f"It waits for no answer; it is {_word(task)}."
    return ""


def _resume(task: Task, facts: ActionFacts) -> str:
    if not facts.resumes:
        return f"{_kind(task)} cannot be resumed: there is no conversation to go on with. Start a new one."
    if facts.inline:
        return _INLINE
    if task.status not in ENDED:
        use = "Use send to add to it, or fork to branch from here." if facts.talks else "Wait for its ending."
        return f"Resume needs an ended run; run {task.run.number} is {_word(task)}. {use}"
    return "" if task.session is not None else "It never had a session to go on with. Start a new task."


def _fork(task: Task, facts: ActionFacts) -> str:
    if not facts.talks:
        return f"{_kind(task)} have no conversation to fork."
    if facts.inline:
        return _INLINE
    if facts.session is None:
        return (
            "It has no conversation to fork yet: wait until it has begun."
            if task.status not in ENDED
            else "It never had a conversation to fork."
        )
    return ""


def _send(task: Task, facts: ActionFacts) -> str:
    if not (facts.talks or facts.takes_input):
        return f"{_kind(task)} cannot be sent anything while they run."
    if facts.inline:
        return _INLINE
    if task.status in ENDED:
        return f"It has ended: {_word(task)}." + (" Use resume to go on with it." if facts.resumes else "")
    return _say(task) if facts.talks else _write(task)


def _say(task: Task) -> str:
    """A running agent may take it in the middle of its turn, which only its host knows."""
    if task.status is Status.CANCELLING:
        return "It is being cancelled. Resume it then."
    if task.follow_up and task.status is not Status.RUNNING:
        return "A follow-up is queued already, which comes next."
    return ""


def _write(task: Task) -> str:
    if task.status is Status.QUEUED:
        return "It has not started yet."
    given: object = task.work.input
    opened = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if not (opened.get("open_stdin") or opened.get("pty")):
        return "Its stdin is closed: it was started without open_stdin or pty."
    return ""


def _unpark(facts: ActionFacts) -> str:
    return "" if facts.parked else "None of its notices is parked."


def _clear(task: Task, facts: ActionFacts) -> str:
    return _needs_ending(task, facts) or ("It is cleared already." if task.hidden else "")


def _needs_ending(task: Task, facts: ActionFacts) -> str:
    if facts.inline:
        return _INLINE
    return "" if task.status in ENDED else f"It has not ended; it is {_word(task)}. Cancel it first."


def _word(task: Task) -> str:
    return task.status.replace("_", " ")


def _kind(task: Task) -> str:
    names = {"call": "Functions", "shell": "Commands", "tool": "Tools of MCP servers", "agent": "Agents"}
    return names.get(task.work.kind, f"Tasks of the kind {task.work.kind}")
