"""Questions of running work: a permission or a question, the ways to answer it, and the answer."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .argument_checks import check_unicode, shown
from .constraints import check_choice
from .errors import InvalidInput
from .plain_text import plain

ONCE, TASK = "once", "task"  # how far an answer reaches
MOST = 100_000  # characters of an answer
ALLOW, REJECT = "allow", "reject"
ASK = "ask"  # what a rule says where a person decides
_YES = frozenset({"y", "yes", "ok", "allow", "once"})
_ALWAYS = frozenset({"always", "all", "a"})
_NO = frozenset({"n", "no", "deny", "reject"})


class Choice(Struct, frozen=True, omit_defaults=True, gc=False):
    """One of the answers that are offered."""

    id: str
    label: str = ""
    allows: bool | None = None  # of a permission: whether it is one that allows
    scope: str = ONCE


PERMISSION = (
    Choice("allow", "Allow once", True),
    Choice("always", "Allow for this task", True, TASK),
    Choice("reject", "Reject", False),
)


class Question(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    id: str  # the asking host's own: the same question asked again after a restart is the same question
    text: str
    kind: str = "question"  # or "permission"
    choices: tuple[Choice, ...] = ()  # none: any text answers it
    several: bool = False  # more than one of the choices may be taken
    subject: str = ""  # of a permission: the tool, and what an answer for this task holds for
    arguments: Any = None  # of a permission: what the tool would be called with
    asked_at: float = 0.0
    deadline_at: float | None = None  # when it counts as refused if nobody has answered


class PermissionRules(Struct, frozen=True, kw_only=True):
    """How requests of an agent are decided before a person is asked."""

    allow: tuple[str, ...] = ()  # patterns of tools
    deny: tuple[str, ...] = ()  # they are looked at first
    otherwise: str = ASK  # for a tool that none of them names
    answer_within: float = -1.0  # seconds; then an open question counts as refused. Below 0: never


class Reply(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    question: str  # the id
    choices: tuple[str, ...] = ()  # ids
    text: str = ""
    allows: bool | None = None
    scope: str = ONCE
    subject: str = ""
    by: str = ""  # "user", "agent", "rule", or "nobody" where it was not answered in time
    at: float = 0.0
    run: int = 0  # of the task, that was answered
    asked_at: float = 0.0  # when, and what, was asked
    asked: str = ""

    def __str__(self) -> str:
        """The answer as a text: the written one, or the choices."""
        return self.text or ", ".join(self.choices)


def permission(
    id: str,
    tool: str,
    *,
    verb: str = "use",
    detail: str = "",
    arguments: Any = None,
    choices: tuple[Choice, ...] = PERMISSION,
) -> Question:
    """Whether an agent may use a tool. An answer for this task holds for every use of that tool."""
    what = f"{tool}: {detail}" if detail else tool
    return Question(
        id=id,
        text=f"May it {verb} {what}?",
        kind="permission",
        choices=choices,
        subject=tool,
        arguments=arguments,
    )


def posed(question: Question) -> Question:
    """A permission can always be given and refused, whoever asks for it."""
    if question.kind == "permission" and not question.choices:
        return replace(question, choices=PERMISSION)
    return question


def check_answer(text: object, scope: object) -> tuple[str, str | None]:
    scope = None if scope is None else check_choice(scope, "scope", (ONCE, TASK))
    if not isinstance(text, str) or not (text := plain(text)).strip():
        raise InvalidInput("An answer needs words.", hint="Give a text, or one of the offered answers.")
    if len(text) > MOST:
        raise InvalidInput(f"An answer has at most {MOST} characters.", hint="Shorten it.")
    return check_unicode(text, "The answer"), scope


def reply_to(question: Question, text: object, *, scope: str | None = None, by: str, now: float) -> Reply:
    """The answer from somebody's words: an offered one by id, label or number, or yes, no, always; otherwise
    the text itself, where nothing is offered.
    """
    text, scope = check_answer(text, scope)
    head, _, rest = text.partition(":")
    found = _choice(question, text) or _choice(question, head)
    reply = Reply(question=question.id, text=text, subject=question.subject, by=by, at=now)
    if found is None and question.several:
        parts = [_choice(question, part) for part in text.split(",")]
        if all(parts):
            return _with(reply, [part for part in parts if part], "", scope)
    if found is not None:
        return _with(reply, [found], rest.strip() if not _choice(question, text) else "", scope)
    if question.choices:
        raise InvalidInput(f"{shown(text)} is none of the answers.", hint=_offered(question))
    return _with(reply, [], text, scope)


def _with(reply: Reply, found: list[Choice], text: str, scope: str | None) -> Reply:
    first = found[0] if found else None
    return replace(
        reply,
        choices=tuple(choice.id for choice in found),
        text=text,
        allows=first.allows if first else None,
        scope=scope or (first.scope if first else ONCE),
    )


def _choice(question: Question, text: str) -> Choice | None:
    said = text.strip().casefold()
    if not said:
        return None
    for number, choice in enumerate(question.choices, 1):
        if said in (choice.id.casefold(), choice.label.casefold(), str(number)):
            return choice
    if question.kind != "permission":
        return None
    wanted = (True, ONCE) if said in _YES else (True, TASK) if said in _ALWAYS else (False, ONCE)
    if wanted == (False, ONCE) and said not in _NO:
        return None
    fitting = [choice for choice in question.choices if choice.allows is wanted[0]]
    return next((choice for choice in fitting if choice.scope == wanted[1]), fitting[0] if fitting else None)


def _offered(question: Question) -> str:
    return "Answer with one of: " + ", ".join(choice.id for choice in question.choices) + "."


def declined(reply: Reply) -> bool:
    """The person refused to answer, or nobody answered in time: there is no answer to use."""
    return reply.allows is False or reply.by == "nobody"


def refusal(question: Question) -> str:
    """The id of the offered answer that refuses; empty if none does."""
    return next((choice.id for choice in question.choices if choice.allows is False), "")


def rejected(question: Question, why: str, *, by: str, now: float) -> Reply:
    """For a question that nobody answers: the work is told so, and goes on."""
    choice = refusal(question)
    return Reply(
        question=question.id,
        choices=(choice,) if choice else (),
        text=why,
        allows=False,
        subject=question.subject,
        by=by,
        at=now,
    )


def allowed(question: Question, *, by: str, now: float) -> Reply:
    """For a permission that a rule, or an earlier answer for this task, gives."""
    choice = next((choice.id for choice in question.choices if choice.allows and choice.scope == ONCE), "")
    return Reply(
        question=question.id,
        choices=(choice,) if choice else (),
        allows=True,
        subject=question.subject,
        by=by,
        at=now,
    )


def ruling(subject: str, allow: Iterable[str], deny: Iterable[str], otherwise: str) -> str:
    """ "allow", "deny" or "ask". A tool that is denied by name is denied, whatever else allows it."""
    said = subject.casefold()
    if any(fnmatchcase(said, pattern.casefold()) for pattern in deny):
        return "deny"
    if any(fnmatchcase(said, pattern.casefold()) for pattern in allow):
        return "allow"
    return otherwise


def granted(subject: str, answers: Iterable[Reply]) -> bool | None:
    """The last answer for all of this task; None where there is none."""
    found = [reply.allows for reply in answers if reply.scope == TASK and reply.subject == subject]
    return found[-1] if found else None
