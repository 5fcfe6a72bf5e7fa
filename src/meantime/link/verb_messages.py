"""The verbs of ports.tasks and of ports.owner as messages: their arguments and answers take their types from
the port."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Struct, structs

from meantime.kernel.argument_checks import as_bytes, check_words
from meantime.kernel.constraints import check_flag
from meantime.kernel.errors import InvalidInput
from meantime.kernel.limits import Limits
from meantime.kernel.model import Ending, InlineLimits, Json, Task, Work
from meantime.kernel.work import Order, check_meta
from meantime.ports.owner import Catalog
from meantime.ports.reminders import Reminders
from meantime.ports.store import Query
from meantime.ports.tasks import Answer, Options, Tasks

encode = msgspec.json.Encoder().encode


class WireOrder(Struct, frozen=True, omit_defaults=True):
    """An order without its function, which stays where it is."""

    work: Work
    env: dict[str, str | None] | None = None
    stdin: bytes | None = None
    environment: dict[str, str] | None = None  # of the process that orders


class WireAnswer(Struct, frozen=True, omit_defaults=True):
    mode: str
    result: Json = None
    task: Task | None = None
    ending: Ending | None = None


class VerbMessages(NamedTuple):
    name: str
    signature: inspect.Signature
    arguments: type[Struct]
    decode_arguments: Callable[[Any], Any]
    decode_answer: Callable[[Any], Any]
    flags: frozenset[str]

    def decode(self, raw: Any) -> dict[str, Any]:
        arguments = self.decode_arguments(raw)
        given = {name: getattr(arguments, name) for name in self.arguments.__struct_fields__}
        if "order" in given:
            given["order"] = from_wire_order(given["order"])
        if "options" in given:
            given["options"] = Options(**structs.asdict(given["options"]))
        return given

    def encode(self, *args: Any, **kwargs: Any) -> bytes:
        given = self._beyond_defaults(self.signature.bind(None, *args, **kwargs).arguments)
        for name in self.flags & given.keys():
            check_flag(given[name], name)
        for name in _WORDS & given.keys():
            given[name] = check_words(given[name], MOST_WORDS)
        _check_plain(given)
        if "order" in given:
            given["order"] = to_wire_order(given["order"])
        if "options" in given:
            options: Options = given["options"]
            if type(options.inline) not in (InlineLimits, type(None)):
                raise InvalidInput(f"inline takes InlineLimits, not {type(options.inline).__name__}.")
            given["options"] = WireOptions(**{**structs.asdict(options), "meta": check_meta(options.meta)})
        if isinstance(text := given.get("data"), str):
            given["data"] = as_bytes(text)
        try:
            return encode(self.arguments(**given))
        except (UnicodeEncodeError, TypeError, RecursionError, ValueError) as problem:
            raise InvalidInput(f"{self.name} was given something that is not JSON: {problem}.") from None

    def _beyond_defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """An older owner refuses arguments that it does not know, so defaults are left out. msgspec does that
        by identity, which two equal numbers of different modules do not have."""
        defaults = {name: parameter.default for name, parameter in self.signature.parameters.items()}
        return {
            name: value
            for name, value in given.items()
            if name != "self" and not (type(value) is type(defaults[name]) and value == defaults[name])
        }


def _on_the_wire(kind: Any) -> Any:
    """Plain values are not checked on their way: the owner does that, in its own words."""
    if kind in _PLAIN or (get_args(kind) and all(one in _PLAIN for one in get_args(kind))):
        return Any
    return _INSTEAD.get(kind, kind)


_PLAIN = (str, int, float, bool, type(None), Any)
_CARRIED = (str, int, float, type(None), list, tuple, set, frozenset, dict, Struct)
_WORDS = frozenset({"by", "reason"})  # any text will do
MOST_WORDS = 500
_INSTEAD: dict[Any, Any] = {Order: WireOrder, str | bytes: bytes}
_options = get_type_hints(Options)
WireOptions = msgspec.defstruct(
    "WireOptions",
    [
        (field, _on_the_wire(_options[field]), getattr(Options(), field))
        for field in Options.__struct_fields__
    ],
    omit_defaults=True,
    kw_only=True,
)
_INSTEAD[Options] = WireOptions


def _check_plain(given: Mapping[str, Any]) -> None:
    """Values that would arrive as something else: JSON has no NaN and nothing endless, which become None, and
    None means something; bytes become a text.
    """
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{name}={value} is not a number.", hint="Give one that is finite.")
        if not isinstance(value, _CARRIED) and name != "data":
            raise InvalidInput(f"{name} cannot be {type(value).__name__}.")
        if isinstance(value, Options | Query | Limits):
            _check_plain(structs.asdict(value))


def _verb(name: str, member: Callable[..., Any]) -> VerbMessages:
    signature = inspect.signature(member)
    hints = get_type_hints(member)
    answer = hints.pop("return")
    fields: list[Any] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        kind = _on_the_wire(hints[parameter.name])
        bare = parameter.default is parameter.empty
        fields.append((parameter.name, kind) if bare else (parameter.name, kind, parameter.default))
    arguments = msgspec.defstruct(name, fields, kw_only=True, omit_defaults=True, forbid_unknown_fields=True)
    return VerbMessages(
        name,
        signature,
        arguments,
        msgspec.json.Decoder(arguments).decode,
        msgspec.json.Decoder(WireAnswer if answer is Answer else answer).decode,
        frozenset(name for name, kind in hints.items() if kind is bool),
    )


def _verbs(port: type) -> dict[str, VerbMessages]:
    members = vars(port).items()
    return {name: _verb(name, member) for name, member in members if inspect.iscoroutinefunction(member)}


CATALOG_VERBS = _verbs(Catalog)
VERBS = {**_verbs(Tasks), **_verbs(Reminders), **CATALOG_VERBS}


def to_wire_order(order: Order) -> WireOrder:
    given = order.kwargs if order.target is None else {}
    return WireOrder(order.work, given.get("env"), given.get("stdin"), given.get("environment"))


def from_wire_order(wire: WireOrder) -> Order:
    if wire.work.kind != "shell":
        return Order(wire.work)
    order = Order(wire.work, kwargs={"env": wire.env or {}, "stdin": wire.stdin})
    return order.with_environment(wire.environment)


def to_wire_answer(answer: Answer) -> WireAnswer:
    return WireAnswer(answer.mode, answer.result, answer.task, answer.ending)


def from_wire_answer(wire: WireAnswer) -> Answer:
    answer = Answer(wire.mode, wire.result, wire.task)
    answer.ending = wire.ending
    return answer
