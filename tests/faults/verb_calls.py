"""Calls for the family `verbs`: every verb there is, found by looking, and what each is given."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from keyword import iskeyword
from typing import Any, NamedTuple

import hypothesis.strategies as st
import msgspec

from meantime.ports.dialect import Tool
from meantime.ports.tasks import Options

from .verb_objects import CONSTRUCTED, FUNCTIONS, HELD, Round, every_tool
from .verb_values import GOOD, HOSTILE, LABELS, RANDOM, Maker

CALLS = 80  # in one round
LAST = "Meantime.close"  # nothing can be asked after it


class Verb(NamedTuple):
    kind: str  # the class
    name: str  # nothing is the class itself, or a function
    parameters: tuple[inspect.Parameter, ...]
    tool: str = ""  # of a dialect, which is the kind

    @property
    def title(self) -> str:
        return f"{self.kind} tool {self.tool}" if self.tool else f"{self.kind}.{self.name}".rstrip(".")


def verbs() -> list[Verb]:
    """Everything public that can be called or read, on every class whose objects a user holds."""
    found = [Verb(kind.__name__, "", _parameters(kind.__init__)) for kind in CONSTRUCTED]
    found += [Verb(name, "", _parameters(function)) for name, function in FUNCTIONS.items()]
    for kind in (*HELD, *CONSTRUCTED):
        for name, member in vars(kind).items():
            if name.startswith("_") and name not in ("__aenter__", "__repr__"):
                continue
            if isinstance(member, property):
                found.append(Verb(kind.__name__, name, ()))
            elif inspect.isfunction(member := getattr(member, "__func__", member)):
                found.append(Verb(kind.__name__, name, _parameters(member)))
    return found + [Verb(dialect, "call", _taken_by(tool), tool.name) for dialect, tool in every_tool()]


def _taken_by(tool: Tool) -> tuple[inspect.Parameter, ...]:
    must = tool.schema.get("required", ())
    return tuple(
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=inspect.Parameter.empty if name in must else None
        )
        for name in tool.schema["properties"]
        if not iskeyword(name)  # `async`
    )


def _parameters(member: Any) -> tuple[inspect.Parameter, ...]:
    every = inspect.signature(member).parameters.values()
    return tuple(one for one in every if one.name not in ("self", "cls"))


VERBS = verbs()
IN_TURN = [verb for verb in VERBS if verb.title != LAST]
OPTIONS = tuple(field.name for field in msgspec.structs.fields(Options))
PICKS = 26  # bytes that choose what one call is given
DRAWN = st.tuples(
    st.binary(min_size=CALLS * PICKS, max_size=CALLS * PICKS), st.lists(RANDOM, min_size=16, max_size=16)
)


class Draw:
    """Choices from bytes, one after the other, and values of hypothesis's own."""

    def __init__(self, picks: bytes, values: list[Any]) -> None:
        self._picks = iter(picks)
        self._values = values

    def number(self) -> int:
        return next(self._picks, 0) << 8 | next(self._picks, 0)

    def value(self, name: str, good: Sequence[Maker]) -> tuple[Any, str]:
        """A third each: good where there is one, hostile, or anything at all."""
        pick = self.number()
        way, pick = pick % 3, pick // 3
        if way == 0 and good:
            return good[pick % len(good)](), f"{name}=good {pick % len(good)}"
        if way == 1:
            value = self._values[pick % len(self._values)]
            return value, f"{name}={show(value)}"
        label = LABELS[pick % len(LABELS)]
        return HOSTILE[label](), f"{name}={label}"


class Given(NamedTuple):
    """One call: of what, with what, and how to say so."""

    verb: Verb
    target: Any
    args: list[Any]
    named: dict[str, Any]
    said: str

    def call(self) -> Any:
        if self.verb.tool:
            return self.target.call(self.verb.tool, self.named)
        if not self.verb.name:
            return self.target(*self.args, **self.named)
        found = getattr(self.target, self.verb.name)
        return found(*self.args, **self.named) if callable(found) else found

    def __str__(self) -> str:
        return f"{self.verb.title}({self.said})"


def call_of(world: Round, verb: Verb, draw: Draw) -> Given:
    target, of_what = world.target(verb.kind, verb.name, draw.number())
    args: list[Any] = []
    named: dict[str, Any] = {}
    said: list[str] = [of_what] if of_what else []

    def value(name: str) -> Any:
        found, how = draw.value(name, [*world.good(name), *GOOD.get(name, ())])
        said.append(how)
        return found

    for place, parameter in enumerate(verb.parameters):
        more = draw.number()
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += [value(parameter.name) for _ in range(more % 3)]
        elif parameter.kind is parameter.VAR_KEYWORD:
            for number in range(more % 3):
                name = OPTIONS[(more // 3 + number) % len(OPTIONS)]
                if name not in named:
                    named[name] = value(name)
        elif parameter.default is parameter.empty or more % 3 == 0:
            if parameter.kind is not parameter.KEYWORD_ONLY and len(args) == place:
                args.append(value(parameter.name))
            else:
                named[parameter.name] = value(parameter.name)
    world.tame(verb.title, named)
    return Given(verb, target, args, named, ", ".join(said))


def show(value: object) -> str:
    try:
        return ascii(value)[:200]
    except Exception:
        return f"<{type(value).__name__}>"
