"""Constraints of given values, declared once, on the field that has them: `port: Annotated[int, PORT]`.

A constraint is a function of a value and its name: it returns plain data, or raises. The ones of this file
also say in words what a value must be, for a configuration. `check_fields` checks a struct that a caller
made; msgspec does that only where it decodes one. `refusal` is the one place that words the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

from msgspec import Struct, structs

from . import argument_checks
from .errors import InvalidInput
from .plain_text import plain

S = TypeVar("S", bound=Struct)
E = TypeVar("E", bound=StrEnum)
LONGEST = 1e10  # seconds: the most that the heart takes as a time
MOST = 1 << 40
Check = Callable[[Any, str], Any]
_PLAIN = frozenset((str, int, float, bool))


class Constraint(NamedTuple):
    """A rule for a value: in words, as a check of plain data, and as the error of a value that breaks it."""

    must: str
    fits: Callable[[Any], bool]
    error: str = "{name} must be {must}, not {value}."
    hint: str = ""
    wrong_type: str = ""  # the error where `types` are not those of the value; "" is `error`
    types: tuple[type, ...] = ()

    def __call__(self, value: Any, name: str) -> Any:
        if type(value) not in _PLAIN:
            value = _plain(value)
        if self.fits(value):
            return value
        raise refusal(self, name, value)

    def worded(self, error: str, hint: str = "") -> Constraint:
        """The same rule with another error."""
        return self._replace(error=error, hint=hint, wrong_type="")


def refusal(broken: Constraint, name: str, value: object) -> InvalidInput:
    other = bool(broken.wrong_type) and type(value) not in broken.types
    said = broken.wrong_type if other else broken.error
    shown = argument_checks.shown(value)
    text = said.format(name=name, must=broken.must, value=shown, type=type(value).__name__)
    return InvalidInput(text, hint="" if other else broken.hint)


def check_fields(given: S) -> S:
    """The same with plain data, or the error of the first field that breaks its constraint. A default is
    not looked at, so None is possible where it is the default."""
    changed: dict[str, Any] = {}
    for name, default, check in _checks(type(given)):
        value = getattr(given, name)
        if value is not default and (checked := check(value, name)) is not value:
            changed[name] = checked
    return structs.replace(given, **changed) if changed else given


@cache
def _checks(kind: type[Struct]) -> tuple[tuple[str, Any, Check], ...]:
    known = constraints_of(kind)
    return tuple(
        (field.name, field.default, known[field.name])
        for field in structs.fields(kind)
        if field.name in known
    )


@cache
def constraints_of(kind: type) -> dict[str, Check]:
    """By the names of the fields."""
    return dict(_declared(kind))


def _declared(kind: type) -> Iterator[tuple[str, Check]]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for one in getattr(hint, "__metadata__", ()):
            if callable(one):
                yield name, one


def _plain(value: Any) -> Any:
    """Texts and numbers of a subclass, which may behave in any way, as themselves."""
    if isinstance(value, str):
        return plain(value)
    number = argument_checks.as_number(value)
    return value if number is None else number


def whole(least: int, most: int = MOST) -> Constraint:
    def fits(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Constraint(f"a whole number from {least} to {most}", fits)


def seconds(least: float = 0, most: float = LONGEST) -> Constraint:
    def fits(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most  # which no NaN is

    return Constraint(f"a number of seconds from {least:g} to {most:.0f}", fits)


@cache
def one_of(*choices: str) -> Constraint:
    def fits(value: Any) -> bool:
        return isinstance(value, str) and value in choices

    must = " or ".join(f'"{choice}"' for choice in choices)
    few = len(choices) < 3
    listed = " or ".join(map(repr, choices)) if few else f"one of: {', '.join(choices)}"
    return Constraint(must, fits, error="{name}={value} is unknown.", hint=f"Use {listed}.")


def or_minus_one(one: Constraint, must: str) -> Constraint:
    def fits(value: Any) -> bool:
        return one.fits(value) or (type(value) in (int, float) and value == -1)

    return Constraint(must, fits)


def table_of(one: Constraint, must: str) -> Constraint:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(map(one.fits, cast("dict[str, Any]", value).values()))

    return Constraint(must, fits)


def _is_limit(value: Any) -> bool:
    return type(value) is int and (value > 0 or value == -1)


def _is_depth(value: Any) -> bool:
    return type(value) is int and value >= -1


def _is_timeout(value: Any) -> bool:
    return type(value) in (int, float) and (0 < value <= LONGEST or value == -1)


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast("list[Any]", value)))


SIZE = whole(0)
COUNT = whole(1)
LIMIT = Constraint(
    "a whole number above 0, or -1 for no limit",
    _is_limit,
    error="{name}={value} is not a limit.",
    hint="Give a whole number above 0, or -1 for none.",
)
DEPTH = Constraint(
    "a whole number from 0 up, or -1 for any",
    _is_depth,
    error="{name}={value} is not a depth.",
    hint="Give a number from 0 up, or -1 for any.",
)
AGE = seconds().worded("{value} is not an age in seconds.", hint="Give a number from 0 up.")
TIMEOUT = Constraint(
    "a number of seconds above 0, or -1 for none",
    _is_timeout,
    error="That timeout is not possible.",
    hint="Give seconds above 0, or -1 for none; 10,000,000,000 is the most.",
    wrong_type="A timeout is a number of seconds, not {type}.",
    types=(int, float),
)
FLAG = Constraint("true or false", _is_flag, error="{name} must be True or False, not {type}.")
PORT = whole(0, 65_535).worded("{name}={value} is not a port.", hint="Give a number from 0 to 65535.")
TEXT = Constraint("a text", _is_text)
TEXTS = Constraint("a list of texts", _are_texts)


# -- arguments of verbs, which have no field to declare it on


def check_flag(value: object, what: str) -> bool:
    return FLAG(value, what)


def check_choice(value: object, what: str, choices: Iterable[str]) -> str:
    """One of a few words."""
    return one_of(*choices)(value, what)


def check_members(given: object, what: str, kind: type[E], one: str) -> list[E]:
    """Words of an enum."""
    words = argument_checks.check_all(given, str, what)
    try:
        return [kind(word) for word in words]
    except ValueError:
        hint = f"{what.capitalize()} are {', '.join(kind)}."
        problem = f"{argument_checks.shown(given)} names an unknown {one}."
        raise InvalidInput(problem, hint=hint) from None


def check_count(value: object, what: str, least: int, most: int) -> int:
    if type(value) is int and least <= value <= most:
        return value
    hint = f"Give a number from {least} to {most}."
    raise refusal(whole(least, most).worded("{name}={value} is not possible.", hint), what, value)


def shown(value: Any) -> str:
    """As the error of a configuration may show it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
