"""Codes and tokens: made, listed and revoked by the owner, exchanged by a page, described to their holder."""

from __future__ import annotations

import os

from meantime.kernel.durations import iso
from meantime.kernel.errors import Refused

from .access_schemas import (
    CodeBody,
    ExchangeBody,
    ExchangedToken,
    ListedToken,
    NewCode,
    NewToken,
    Reach,
    TokenBody,
    TokenList,
)
from .client_limits import connection_of
from .dependencies import Dependencies
from .gate import CALLER
from .issued_tokens import Grant
from .one_time_codes import CodeRefused, link
from .responses import Refusal
from .routing import RequestContext
from .task_lookup import find
from .thread_requests import EmptyBody
from .token_file import IssuedToken
from .tokens import Caller

_STATUSES = {"unknown_code": 404, "code_used": 410, "code_expired": 410, "other_user": 403}
_PAGE = "page"  # the name of a token that a page got


async def make_code(deps: Dependencies, asked: RequestContext[None, CodeBody]) -> NewCode:
    body = asked.body
    if not deps.settings.url:
        text = "This server has no address for browsers."
        raise Refused(text, code="no_address", hint="Set http.enabled: `meantime config` shows it.")
    grant = await _grant(deps, body)
    code, expires = deps.tokens.codes.make(grant, minutes=body.minutes, same_user=body.same_user)
    return NewCode(code=code, url=link(deps.settings.url, code), expires_at=iso(expires))


async def exchange_code(deps: Dependencies, asked: RequestContext[None, ExchangeBody]) -> ExchangedToken:
    connection = connection_of(asked.request.scope)
    own = connection is not None and connection.uid == os.geteuid()
    try:
        with deps.tokens.codes.taken(asked.body.code, own=own) as grant:
            made, token = await deps.tokens.issued.issue(grant, _PAGE, page=True)
    except CodeRefused as no:
        status = _STATUSES.get(no.code, 429)
        raise Refusal(status, no.code, no.message, no.hint) from None
    return ExchangedToken(token=token, access=made.access, **_scope(made))


async def get_access(deps: Dependencies, asked: RequestContext[None, None]) -> Reach:
    caller: Caller = asked.request.scope[CALLER]
    if caller.issued is not None:
        return Reach(access=caller.issued.access, **_scope(caller.issued))
    access = "write" if caller.writes else "read"
    return Reach(id=None, access=access, thread=caller.thread, question=None, expires_at=None)


async def list_tokens(deps: Dependencies, asked: RequestContext[None, None]) -> TokenList:
    now = deps.clock.now()
    return TokenList(tokens=[_listed(one, now) for one in deps.tokens.issued.listed()])


async def make_token(deps: Dependencies, asked: RequestContext[None, TokenBody]) -> NewToken:
    grant = await _grant(deps, asked.body)
    made, token = await deps.tokens.issued.issue(grant, asked.body.name)
    return NewToken(token=token, name=made.name, access=made.access, **_scope(made))


async def revoke_token(deps: Dependencies, asked: RequestContext[None, EmptyBody]) -> ListedToken:
    return _listed(await deps.tokens.issued.revoke(asked.subject), deps.clock.now())


async def _grant(deps: Dependencies, body: CodeBody | TokenBody) -> Grant:
    grant = Grant(body.access, body.thread, body.question, body.days).checked()
    if grant.question is None:
        return grant
    return grant._replace(question=(await find(deps.tasks, grant.question, None)).id)


def _scope(token: IssuedToken) -> dict[str, str | None]:
    return {
        "id": token.id,
        "thread": token.thread,
        "question": token.question,
        "expires_at": iso(token.expires_at),
    }


def _listed(token: IssuedToken, now: float) -> ListedToken:
    over = "expired" if token.expires_at <= now else "valid"
    return ListedToken(
        name=token.name,
        page=token.page,
        state="revoked" if token.revoked_at is not None else over,
        created_at=iso(token.created_at),
        used_at=None if token.used_at is None else iso(token.used_at),
        revoked_at=None if token.revoked_at is None else iso(token.revoked_at),
        access=token.access,
        **_scope(token),
    )
