"""JSON-RPC messages of which the envelope alone is read: everything inside is passed on byte for byte."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
MOST_IN_BATCH = 1_000
INITIALIZED, CANCELLED = "notifications/initialized", "notifications/cancelled"
NOTHING = Raw()
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
# In the _meta of every request of the protocol that has no handshake; its answers say that they are whole.
ENVELOPE = "io.modelcontextprotocol/protocolVersion"


class RawMessage(Struct):
    """A request, a notification or an answer. A part that is missing is empty."""

    id: Raw = NOTHING
    method: str = ""
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING

    @property
    def has_id(self) -> bool:
        return bool(self.id) and bytes(self.id) != b"null"

    @property
    def is_request(self) -> bool:
        return self.has_id and bool(self.method)


_message = msgspec.json.Decoder(RawMessage)
_batch = msgspec.json.Decoder(list[Raw])
_parts = msgspec.json.Decoder(dict[str, Raw])
_id = msgspec.json.Decoder(int | str)
_encode = msgspec.json.Encoder().encode


def read(line: bytes) -> list[RawMessage]:
    """The messages of a line: one, or those of a batch of the protocol of 2025-03-26. Raises UNREADABLE."""
    if line.lstrip()[:1] != b"[":
        return [_message.decode(line)]
    several = _batch.decode(line)
    if len(several) > MOST_IN_BATCH:
        raise msgspec.ValidationError(f"a batch has more than {MOST_IN_BATCH} messages")
    return [_message.decode(one) for one in several]


def parts(raw: Raw) -> dict[str, Raw]:
    """The members of an object, unread; empty for what is not an object."""
    try:
        return _parts.decode(raw) if raw else {}
    except UNREADABLE:
        return {}


def encoded(members: dict[str, Raw]) -> Raw:
    return Raw(_encode(members))


def value(raw: Raw | None) -> Any:
    """The value, decoded; None if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(raw) if raw else None
    except UNREADABLE:
        return None


def text(raw: Raw | None) -> str:
    said = value(raw)
    return said if isinstance(said, str) else ""


def raw(given: Any) -> Raw:
    return Raw(_encode(given))


def key(id: Raw) -> int | str | None:
    """An id that can be compared: 1 and "1" are two."""
    try:
        return _id.decode(id)
    except UNREADABLE:
        return None


def request(id: Raw | bytes, method: str, params: Raw) -> bytes:
    given = (b',"params":', params, b"}") if params else (b"}",)
    return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"method":', _encode(method), *given))


def notification(method: str, params: Raw = NOTHING) -> bytes:
    head = b'{"jsonrpc":"2.0","method":' + _encode(method)
    return head + (b',"params":' + bytes(params) + b"}" if params else b"}")


def answer(id: Raw | bytes, result: Raw = NOTHING, error: Raw = NOTHING) -> bytes:
    what, given = (b"error", error) if error else (b"result", result)
    return b"".join((b'{"jsonrpc":"2.0","id":', id, b',"', what, b'":', given or b"{}", b"}"))


def refusal(id: Raw | bytes, code: int, said: str, data: Any = None) -> bytes:
    more = {} if data is None else {"data": data}
    return answer(id, error=raw({"code": code, "message": said, **more}))
