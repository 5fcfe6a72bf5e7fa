"""Errors keep their class, code, hint and details on their way."""

from __future__ import annotations

from msgspec import Struct

from meantime.kernel import errors
from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Task
from meantime.kernel.plain_text import escape_surrogates

_KINDS: dict[str, type[MeantimeError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, MeantimeError)
}
_DETAILS = ("existing", "candidates", "running", "limit", "notices", "task", "by", "at", "answer")


class WireError(Struct, frozen=True, omit_defaults=True):
    kind: str
    code: str
    message: str
    hint: str = ""
    existing: str | None = None
    candidates: tuple[str, ...] | None = None
    running: int | None = None
    limit: int | None = None
    notices: tuple[str, ...] | None = None
    task: Task | None = None
    by: str | None = None
    at: float | None = None
    answer: str | None = None


def to_wire(error: BaseException) -> WireError:
    if not isinstance(error, MeantimeError):
        text = escape_surrogates(f"The owner of the ledger failed: {type(error).__name__}: {error}")
        return WireError("MeantimeError", "internal", text[:4_000], "Its log says more.")
    details = {name: vars(error).get(name) for name in _DETAILS}
    message, hint = escape_surrogates(error.message), escape_surrogates(error.hint)
    return WireError(type(error).__name__, error.code, message, hint, **details)


def from_wire(wire: WireError) -> MeantimeError:
    kind = _KINDS.get(wire.kind, MeantimeError)
    error = kind.__new__(kind)
    MeantimeError.__init__(error, wire.message, code=wire.code, hint=wire.hint)
    for name in _DETAILS:
        value = getattr(wire, name)
        if value is not None:
            setattr(error, name, value)
    return error
