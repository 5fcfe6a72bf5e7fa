"""JSON-RPC: requests, answers, and errors with the codes of A2A."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct, field

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound, Refused
from meantime.surfaces.http.request_body import parsed
from meantime.surfaces.http.responses import encode
from meantime.surfaces.http.schemas import Body

PARSE, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
TASK_NOT_FOUND, NOT_CANCELABLE, UNSUPPORTED, CONTENT_TYPE, VERSION = -32001, -32002, -32004, -32005, -32009
_DOMAIN = "a2a-protocol.org"
T = TypeVar("T", bound=Struct)


class RpcRequest(Body, forbid_unknown_fields=False, rename=lambda name: name):
    jsonrpc: str
    method: str
    id: str | int | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])


class RpcRefusal(MeantimeError):
    """A refusal with a code of JSON-RPC."""

    def __init__(self, number: int, message: str, hint: str = "", code: str = "refused") -> None:
        super().__init__(message, code=code, hint=hint)
        self.number = number


def request_of(data: bytes) -> RpcRequest:
    try:
        request = parsed(data, RpcRequest)
    except InvalidInput as problem:
        number = PARSE if problem.code == "invalid_json" else INVALID_REQUEST
        raise RpcRefusal(number, problem.message, problem.hint, problem.code) from None
    if request.jsonrpc != "2.0":
        raise RpcRefusal(INVALID_REQUEST, 'jsonrpc must be "2.0".')
    return request


def params_of(request: RpcRequest, kind: type[T]) -> T:
    def error(mismatch: Mismatch) -> RpcRefusal:
        return RpcRefusal(INVALID_PARAMS, f"params are not right: {mismatch.text}.", code="invalid_input")

    with mismatch_raises(error):
        return msgspec.convert(request.params, kind)


def answered(id: str | int | None, result: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def refused(id: str | int | None, problem: MeantimeError) -> bytes:
    info: dict[str, Any] = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": problem.code.upper(),
        "domain": _DOMAIN,
        "metadata": {"code": problem.code, "hint": problem.hint},
    }
    text = f"{problem.message} {problem.hint}".strip()
    error = {"code": _number(problem), "message": text, "data": [info]}
    return encode({"jsonrpc": "2.0", "id": id, "error": error})


def _number(problem: MeantimeError) -> int:
    match problem:
        case RpcRefusal():
            return problem.number
        case NotFound():
            return TASK_NOT_FOUND
        case InvalidInput():
            return INVALID_PARAMS
        case Refused():
            return UNSUPPORTED
        case _:
            return INTERNAL


def id_of(data: bytes) -> str | int | None:
    """The id of a request that is not right otherwise."""
    try:
        found: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    id = cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None
    return id if isinstance(id, str | int) else None
