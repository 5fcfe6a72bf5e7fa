"""Bodies and answers about access: codes, tokens, and what the caller's own may do."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .issued_tokens import MOST_DAYS, MOST_NAME
from .one_time_codes import MINUTES, MOST_MINUTES
from .schemas import Answer, Body, Id, Time, described, documented, one_of

AccessText: TypeAlias = Annotated[str, one_of("read", "write")]
_THREAD = "It sees this thread only."
_QUESTION = "It can read this task and answer its question, and nothing else."


class CodeBody(Body):
    access: AccessText = "write"
    thread: Annotated[Id | None, described(_THREAD)] = None
    question: Annotated[Id | None, described(_QUESTION)] = None
    minutes: Annotated[int, documented("How long the code can be used.", minimum=1, maximum=MOST_MINUTES)] = (
        MINUTES
    )
    days: Annotated[float, documented("How long its token lasts.", exclusiveMinimum=0, maximum=MOST_DAYS)] = (
        7.0
    )
    same_user: Annotated[
        bool,
        described("Only a program of the server's own user can exchange it, whoever else sees the code."),
    ] = False


class NewCode(Answer):
    code: str
    url: Annotated[str, described("Opens the page; the code is in its fragment.")]
    expires_at: Time


class ExchangeBody(Body):
    code: Annotated[str, documented("", minLength=1, maxLength=200)]


class Reach(Answer):
    """The rights of a token. Without an id it is not one of those that are listed."""

    id: str | None
    access: AccessText
    thread: Annotated[str | None, described("The only thread that it sees.")]
    question: Annotated[str | None, described("The only task that it sees, and whose question it answers.")]
    expires_at: Time


class ExchangedToken(Reach):
    token: Annotated[str, described("Send it as `Authorization: Bearer`. It is shown once.")]


class TokenBody(Body):
    name: Annotated[str, documented("Whom it is for.", minLength=1, maxLength=MOST_NAME)]
    access: AccessText = "read"
    thread: Annotated[Id | None, described(_THREAD)] = None
    question: Annotated[Id | None, described(_QUESTION)] = None
    days: Annotated[float, documented("How long it lasts.", exclusiveMinimum=0, maximum=MOST_DAYS)] = 30.0


class NewToken(ExchangedToken):
    name: str


class ListedToken(Reach):
    name: str
    page: Annotated[bool, described("A page got it for a code.")]
    state: Literal["valid", "expired", "revoked"]
    created_at: Time
    used_at: Annotated[Time, described("To the minute.")]
    revoked_at: Time


class TokenList(Answer):
    tokens: list[ListedToken]
