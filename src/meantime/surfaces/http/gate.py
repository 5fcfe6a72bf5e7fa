"""The gate: who may ask. Seed 001's open CORS headers stay as they are; permission is decided here.

Host first, against pages that rebind a name to us. Then a token, in a header or in the path, or a
program of the same user that is not a browser: so plain curl works as the seed says, and a web page,
which the headers would let read everything, gets nothing. Writing needs a token, JSON, and no foreign
page. On the unix socket the kernel says who asks: this user may do everything, and nobody else anything.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from meantime.surfaces.dashboard.assets import HEADERS as PAGE

from .client_limits import TARGET, HttpConnection, connection_of
from .dashboard_page import is_page
from .http_settings import HttpSettings
from .protocol_endpoint import lasts
from .responses import CORS, SAFE, Refusal, error_response
from .token_end import ended_token, until_ended
from .tokens import Caller, Tokens

LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
CALLER = "meantime.caller"
WRITING = "meantime.writing"  # raises a Refusal for those who may not write
BY_PATH = "meantime.by_path"  # whether the token was in the path: then Authorization is not ours
LASTING = ("/v1/wait", "/mcp")  # paths whose POST waits or streams
WRAPS = "/mcp/wrap/"  # so do those below this one
URL_BYTES = 8_192
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"via")
_NO_TOKEN = "Send 'Authorization: Bearer <token>', or use /~<token>/v1/…; the token is in {where}."
# A page of another origin can read this, so it does not name a folder of this machine.
_NO_TOKEN_PAGE = "Send 'Authorization: Bearer <token>'; `meantime open` opens a page that has a token."


class RequestGate:
    def __init__(
        self, app: ASGIApp, settings: HttpSettings, tokens: Tokens, open_paths: frozenset[str]
    ) -> None:
        self._app = app
        self._open_paths = open_paths  # they need no token
        self._settings = settings
        self._tokens = tokens
        where = settings.folder / "token" if settings.folder else "the server's .token"
        self._hint = _NO_TOKEN.format(where=where)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no web sockets, no lifespan
        page = is_page(_capability(_path(scope))[1])
        send = _with_headers(send, PAGE if page else (*CORS, *SAFE))
        try:
            inside = self._pass(scope)
        except Refusal as no:
            await error_response(no)(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            await Response(status_code=204)(scope, receive, send)
            return
        await self._serve(inside, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An answer that may take long ends with its token. A write is not broken off."""
        token = scope[CALLER].issued
        path = scope["path"]
        is_lasting = path in LASTING or path.startswith(WRAPS) or lasts(path)
        if token is None or (scope["method"] == "POST" and not is_lasting):
            await self._app(scope, receive, send)
            return
        with self._tokens.issued.watched(token) as ended:
            await until_ended(self._app, scope, receive, send, ended)

    def _pass(self, scope: Scope) -> Scope:
        """The request as the routes see it, with its caller; a Refusal otherwise."""
        headers = Headers(scope)
        connection = connection_of(scope)
        if connection is not None and connection.is_unix:
            _check_user(connection)
        else:
            self._check_host_header(scope, headers)
        self._check_size(scope, headers)
        token, path = _capability(_path(scope))
        if scope["method"] == "OPTIONS" or path in self._open_paths or is_page(path):
            caller = Caller()
        else:
            caller = self._admit(connection, headers, token)
        writing = partial(self._check_write, caller, headers)
        own = {CALLER: caller, WRITING: writing, BY_PATH: token is not None}
        return {**scope, "path": path, "raw_path": path.encode(), **own}

    def _check_host_header(self, scope: Scope, headers: Headers) -> None:
        """The name in the Host header, and the one in the target itself, where it has one."""
        names = {headers.only(b"host").lower(), _authority(scope) or headers.only(b"host").lower()}
        port = (scope.get("server") or ("", 0))[1]
        allowed = {f"{local}:{port}" for local in LOCAL_NAMES} | {
            host.lower() for host in self._settings.hosts
        }
        if port == 80:
            allowed.update(LOCAL_NAMES)
        if not names <= allowed:
            text = "This server does not answer to that name."
            raise Refusal(421, "wrong_host", text, f"Use http://127.0.0.1:{port}, or add the name to hosts=…")

    def _check_size(self, scope: Scope, headers: Headers) -> None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > URL_BYTES:
            raise Refusal(414, "url_too_long", f"The URL is longer than {URL_BYTES} bytes.")
        length = headers.only(b"content-length") or "0"
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > self._settings.body_bytes:
            raise Refusal(413, "body_too_big", f"A body has at most {self._settings.body_bytes} bytes.")

    def _admit(self, connection: HttpConnection | None, headers: Headers, token: str | None) -> Caller:
        if token is None and headers.has(b"authorization"):
            kind, _, token = headers.only(b"authorization").partition(" ")
            token = token.strip() if kind.lower() == "bearer" else ""
        elif token is None and headers.has(b"x-api-key"):  # as clients of Agent Protocol send it
            token = headers.only(b"x-api-key")
        if token is not None:
            caller = self._tokens.caller(token)
            if caller is None:
                raise Refusal(
                    401, "wrong_token", "This is not a token of this server.", self._hint_for(headers)
                )
            if caller.ended:
                raise ended_token(caller.ended)
            return caller
        is_unix = connection is not None and connection.is_unix
        if self._settings.auth == "strict" and not is_unix:
            raise Refusal(401, "token_needed", "Every request needs a token here.", self._hint_for(headers))
        if not _is_plain(headers):
            raise Refusal(401, "token_needed", "Web pages and proxies need a token.", _NO_TOKEN_PAGE)
        if connection is None or connection.uid != os.geteuid():
            raise Refusal(
                401, "token_needed", "Only this user's own programs need no token.", self._hint_for(headers)
            )
        return Caller(writes=is_unix)

    def _hint_for(self, headers: Headers) -> str:
        return self._hint if _is_plain(headers) else _NO_TOKEN_PAGE

    def _check_write(
        self, caller: Caller, headers: Headers, *, json: bool = True, token: bool = True
    ) -> None:
        """`json`: it has a body. `token`: it needs one that may write."""
        if token and caller.issued is not None and not caller.writes:
            text = "This token can only read."
            raise Refusal(403, "read_only_token", text, "Ask for a link without --read-only.")
        if token and not caller.writes:
            raise Refusal(401, "token_needed", "Writing needs a token.", self._hint_for(headers))
        host, origin = headers.only(b"host").lower(), headers.only(b"origin").lower()
        if headers.has(b"origin") and origin not in (f"http://{host}", f"https://{host}"):
            raise Refusal(403, "foreign_origin", "A page of another origin cannot write.")
        if json and headers.only(b"content-type").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "not_json", "A body is JSON.", "Send 'Content-Type: application/json'.")


def _check_user(connection: HttpConnection) -> None:
    if connection.uid != os.geteuid():
        raise Refusal(403, "other_user", "This socket is another user's.")


class Headers:
    """A request's headers. A header that is given twice is not believed."""

    def __init__(self, scope: Scope) -> None:
        self._found: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            self._found.setdefault(name.lower(), []).append(value)

    def has(self, name: bytes) -> bool:
        return name in self._found

    def only(self, name: bytes) -> str:
        found = self._found.get(name, [])
        return found[0].decode("latin-1").strip() if len(found) == 1 else ""


def _target(scope: Scope) -> bytes:
    return scope.get(TARGET) or scope.get("raw_path") or b""


def _authority(scope: Scope) -> str | None:
    """The name in an absolute target, `GET http://name/v1/tasks`; None for the usual one, which has none."""
    target = _target(scope)
    if target.startswith(b"/") or target == b"*":
        return None
    return target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0].decode("latin-1").lower()


def _path(scope: Scope) -> str:
    """h11 leaves an absolute target in the path."""
    path: str = scope["path"]
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]


def _capability(path: str) -> tuple[str | None, str]:
    """A token in the path, for those that cannot send headers, and the path without it."""
    if not path.startswith("/~"):
        return None, path
    token, _, rest = path[2:].partition("/")
    return token, f"/{rest}"


def _is_plain(headers: Headers) -> bool:
    """Neither a page, nor somebody that speaks for others."""
    if headers.has(b"origin") or any(headers.has(name) for name in _FORWARDED):
        return False
    # "none" is an address that a person typed. Our own page has a token, and sends it.
    return not headers.has(b"sec-fetch-site") or headers.only(b"sec-fetch-site") == "none"


def _with_headers(send: Send, added: tuple[tuple[bytes, bytes], ...]) -> Send:
    """On every answer, even on a refusal."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[Any] = list(message.get("headers", ()))
            message = {**message, "headers": [*headers, *added]}
        await send(message)

    return sending
