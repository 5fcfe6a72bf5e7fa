"""The table of routes about access: one-time codes, tokens, and the rights of the caller."""

from __future__ import annotations

from .access_grants import exchange_code, get_access, list_tokens, make_code, make_token, revoke_token
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
from .routing import TOKEN, Access, AnyRoute, Route
from .thread_requests import EmptyBody

READS: tuple[AnyRoute, ...] = (
    Route(
        method="GET",
        path="/v1/access",
        operation="getAccess",
        summary="The rights of the caller",
        gives="The scope of its token; `id` is null if it is not a token of the list.",
        handler=get_access,
        question=True,
        answer=Reach,
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        operation="listTokens",
        summary="The tokens that were given out",
        note="Not for a token that was given out itself.",
        gives="Newest first; without the tokens themselves, of which only hashes are kept.",
        handler=list_tokens,
        access=Access.READ_OWNER,
        answer=TokenList,
    ),
)

WRITES: tuple[AnyRoute, ...] = (
    Route(
        method="POST",
        path="/v1/codes",
        operation="makeCode",
        summary="Makes a link that opens the page, once",
        note="409 `no_address` if TCP is not served, and `too_many_codes` while 32 were not used. It needs "
        "the server's own token, or the unix socket.",
        gives="The code, and the link with it.",
        handler=make_code,
        access=Access.WRITE_OWNER,
        body=CodeBody,
        answer=NewCode,
        status=201,
    ),
    Route(
        method="POST",
        path="/v1/codes/exchange",
        operation="exchangeCode",
        summary="Exchanges a code for a token",
        note="It needs no token. 404 `unknown_code`; 410 `code_used` and `code_expired`; 403 `other_user` if "
        "the code is for the server's own user; 429 `too_many_tries` after 20 wrong ones in a minute.",
        gives="The token, shown once, and its scope.",
        handler=exchange_code,
        access=Access.OPEN_WRITE,
        body=ExchangeBody,
        answer=ExchangedToken,
        errors=(410, 429, 507),
    ),
    Route(
        method="POST",
        path="/v1/tokens",
        operation="makeToken",
        summary="Gives out a token",
        note="409 `too_many_tokens` if 100 are valid. It needs the server's own token, or the unix socket.",
        gives="The token, shown once, and its scope.",
        handler=make_token,
        access=Access.WRITE_OWNER,
        body=TokenBody,
        answer=NewToken,
        status=201,
        errors=(507,),
    ),
    Route(
        method="POST",
        path="/v1/tokens/{token}/revoke",
        operation="revokeToken",
        summary="Refuses a token from now on",
        note="Its streams end with the event `unauthorized`. It needs the server's own token, or the unix "
        "socket.",
        gives="The token as it is listed.",
        handler=revoke_token,
        access=Access.WRITE_OWNER,
        subject=TOKEN,
        body=EmptyBody,
        answer=ListedToken,
        errors=(507,),
    ),
)
