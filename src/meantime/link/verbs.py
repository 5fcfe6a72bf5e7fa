"""The verbs of ports.tasks as messages: their arguments and answers take their types from the port."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, get_type_hints

import msgspec
from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Json, Task, Work
from meantime.kernel.work import Order
from meantime.ports import tasks as port
from meantime.ports.tasks import Answer, Options, Tasks

encode = msgspec.json.Encoder().encode


class WireOrder(Struct, frozen=True, omit_defaults=True):
    """An order without its function, which stays where it is."""

    work: Work
    env: dict[str, str | None] | None = None
    stdin: bytes | None = None
    base: dict[str, str] | None = None  # the environment of the process that orders


class WireAnswer(Struct, frozen=True, omit_defaults=True):
    mode: str
    result: Json = None
    task: Task | None = None
    left_running: tuple[int, ...] = ()


class Verb(NamedTuple):
    name: str
    signature: inspect.Signature
    arguments: type[Struct]
    decode_arguments: Callable[[Any], Any]
    decode_answer: Callable[[Any], Any]

    def encode(self, *args: Any, **kwargs: Any) -> bytes:
        given = self.signature.bind(None, *args, **kwargs).arguments
        del given["self"]
        _check_numbers(given.values())
        if "order" in given:
            given["order"] = to_wire_order(given["order"])
        if isinstance(text := given.get("data"), str):
            given["data"] = text.encode("utf-8", "surrogateescape")
        try:
            return encode(self.arguments(**given))
        except (UnicodeEncodeError, TypeError, RecursionError, ValueError) as problem:
            raise InvalidInput(f"{self.name} was given something that is not JSON: {problem}.") from None


_ON_THE_WIRE: dict[Any, Any] = {Order: WireOrder, str | bytes: bytes}


def _check_numbers(given: Iterable[Any]) -> None:
    """JSON has no NaN and nothing endless: they would arrive as None, and None means something."""
    for value in given:
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{value} is not a number of seconds.", hint="Give one that is finite.")
        if isinstance(value, Options):
            _check_numbers([value.timeout])


def _verb(name: str, member: Callable[..., Any]) -> Verb:
    signature = inspect.signature(member)
    hints = get_type_hints(member, dict(vars(port)))
    answer = hints.pop("return")
    fields: list[Any] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        kind = _ON_THE_WIRE.get(hints[parameter.name], hints[parameter.name])
        bare = parameter.default is parameter.empty
        fields.append((parameter.name, kind) if bare else (parameter.name, kind, parameter.default))
    arguments = msgspec.defstruct(name, fields, kw_only=True, omit_defaults=True, forbid_unknown_fields=True)
    return Verb(
        name,
        signature,
        arguments,
        msgspec.json.Decoder(arguments).decode,
        msgspec.json.Decoder(WireAnswer if answer is Answer else answer).decode,
    )


VERBS = {
    name: _verb(name, member) for name, member in vars(Tasks).items() if inspect.iscoroutinefunction(member)
}


def to_wire_order(order: Order) -> WireOrder:
    given = order.kwargs if order.target is None else {}
    return WireOrder(order.work, given.get("env"), given.get("stdin"), given.get("base"))


def from_wire_order(wire: WireOrder) -> Order:
    if wire.work.kind != "shell":
        return Order(wire.work)
    return Order(wire.work, kwargs={"env": wire.env or {}, "stdin": wire.stdin, "base": wire.base})


def to_wire_answer(answer: Answer) -> WireAnswer:
    return WireAnswer(answer.mode, answer.result, answer.task, tuple(answer.left_running))


def from_wire_answer(wire: WireAnswer) -> Answer:
    answer = Answer(wire.mode, wire.result, wire.task)
    answer.left_running = wire.left_running
    return answer
