"""Values for the family `verbs`: a few good ones by the name of a parameter, and hostile ones for all."""

from __future__ import annotations

import asyncio
import enum
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import hypothesis.strategies as st

from meantime import (
    Agent,
    Call,
    Delivery,
    InlineLimits,
    MeantimeError,
    Message,
    ProcessLimits,
    Shell,
    Tool,
)
from meantime.kernel.lines import Line

CLOSING: list[Coroutine[Any, Any, Any]] = []  # coroutines that were given away, and must not complain


class Own(Exception):
    """What a function of the caller raises: `thread.call` hands it on, and that is right."""


async def noop(*_: object, **__: object) -> str:
    return "done"


def fails(*_: object, **__: object) -> None:
    raise Own("on purpose")


async def never(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


def _raise(*_: object, **__: object) -> Any:
    raise Own("a value that will not be looked at")


class Sulky:
    """Everything that can be asked of it raises, but what Python needs to keep it."""

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __format__ = _raise  # type: ignore[assignment]
    __contains__ = __int__ = __float__ = __index__ = __lt__ = __gt__ = __fspath__ = __call__ = _raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise Own(name)


class Mute:
    __repr__ = __str__ = _raise  # type: ignore[assignment]


class Unequal:
    __eq__ = __hash__ = _raise  # type: ignore[assignment]


class Agreeable:
    """Has every attribute that is asked for, and each is another one of these."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Agreeable()

    def __call__(self, *_: object, **__: object) -> Any:
        return Agreeable()


class SulkyText(str):
    """A text that is one, and does not behave like one."""

    __slots__ = ()
    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __format__ = _raise  # type: ignore[assignment]
    strip = startswith = partition = removeprefix = rpartition = encode = isascii = split = _raise


class SulkyNumber(int):
    __repr__ = __str__ = __eq__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __format__ = _raise  # type: ignore[assignment]
    __neg__ = __sub__ = __add__ = __bool__ = __rsub__ = __radd__ = _raise


class SulkyFloat(float):
    __repr__ = __str__ = __eq__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __format__ = _raise  # type: ignore[assignment]


class SulkyList(list[Any]):
    __iter__ = __len__ = __repr__ = __eq__ = __bool__ = _raise  # type: ignore[assignment]


class SulkyDict(dict[str, Any]):
    __iter__ = items = keys = __len__ = __repr__ = __eq__ = __bool__ = _raise  # type: ignore[assignment]


class Word(enum.StrEnum):
    ALL = "all"
    KEEP = "keep"


class Number(enum.IntEnum):
    ONE = 1


class Odd(enum.Enum):
    THING = object()


class NoOrder:
    """Looks like work, and what it hands over is not."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def order(self) -> Any:
        return self._given() if callable(self._given) else self._given


class Listening:
    delivery = Delivery("C")

    async def has(self, thread: str, notice: str) -> bool:
        return False

    async def deliver(self, thread: str, notices: object) -> None: ...


@functools.cache
def deep(levels: int = 100_000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@functools.cache
def deep_dict(levels: int = 100_000) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


def endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


def coroutine() -> Coroutine[Any, Any, Any]:
    made = noop()
    CLOSING.append(made)
    return made


def raising() -> Any:
    yield "a"
    raise Own("in the middle")


def future() -> Future[Any]:
    made: Future[Any] = Future()
    made.set_result(3)
    return made


def close_coroutines() -> None:
    while CLOSING:
        CLOSING.pop().close()


HUGE = "x" * 200_000
Maker = Callable[[], Any]


def kept(value: Any) -> Maker:
    return lambda: value


# Each with a name: a problem is reported with the names of what was given.
HOSTILE: dict[str, Maker] = {
    "None": kept(None),
    "True": kept(True),
    "0": kept(0),
    "-1": kept(-1),
    "-7": kept(-7),
    "2**70": kept(2**70),
    "-2**70": kept(-(2**70)),
    "10**5000": kept(10**5000),
    "nan": kept(float("nan")),
    "inf": kept(float("inf")),
    "-inf": kept(float("-inf")),
    "1e308": kept(1e308),
    "1j": kept(1j),
    "empty text": kept(""),
    "blank": kept(" \n\t "),
    "lone surrogate": kept("\ud800"),
    "NUL": kept("a\x00b"),
    "../": kept("../../etc/passwd"),
    "an unknown word": kept("zebra"),
    "a huge text": kept(HUGE),
    "emoji": kept("🎉"),
    "bytes": kept(b"\xff\x00"),
    "bytearray": lambda: bytearray(b"a"),
    "memoryview": lambda: memoryview(b"a"),
    "depth 100,000": deep,
    "a dict of depth 100,000": deep_dict,
    "a list in itself": endless,
    "()": kept(()),
    "{}": dict,
    "a dict": lambda: {"a": 1},
    "a dict with odd keys": lambda: {1: 2, None: 3, b"x": 4},
    "a dict with a surrogate": lambda: {"\ud800": "\ud800"},
    "a set": lambda: {1, 2},
    "a list of None": lambda: [None],
    "a list of Mute": lambda: [Mute()],
    "a list of texts": lambda: ["a", "b"],
    "sulky": Sulky,
    "mute": Mute,
    "unequal": Unequal,
    "agreeable": Agreeable,
    "sulky text": lambda: SulkyText("abc"),
    "sulky number": lambda: SulkyNumber(3),
    "sulky float": lambda: SulkyFloat(3.5),
    "sulky list": lambda: SulkyList(["a"]),
    "sulky dict": lambda: SulkyDict(a=1),
    "text enum": kept(Word.ALL),
    "number enum": kept(Number.ONE),
    "odd enum": kept(Odd.THING),
    "a generator": lambda: (one for one in "abc"),
    "a generator that raises": raising,
    "a coroutine": coroutine,
    "a function": kept(noop),
    "a lambda that raises": kept(_raise),
    "a class": kept(Mute),
    "a module": kept(asyncio),
    "an exception": lambda: ValueError("x"),
    "MeantimeError": lambda: MeantimeError("x"),
    "object": object,
    "Ellipsis": kept(...),
    "range": kept(range(3)),
    "an order that raises": lambda: NoOrder(_raise),
    "an order of None": lambda: NoOrder(None),
    "an order that is agreeable": lambda: NoOrder(Agreeable),
}

LABELS = tuple(HOSTILE)

# What makes a call get past its first check; the world adds its own ids and objects.
GOOD: dict[str, list[Maker]] = {
    "work": [
        lambda: Call(noop),
        lambda: Call(noop, 1, a=[2]),
        lambda: Call(fails),
        lambda: Call(never),
        lambda: Call(noop, Mute()),
        lambda: Call(noop, deep()),
        lambda: Tool("nobody/there", {"a": 1}),
        lambda: Agent("nobody", "hello"),
    ],
    "fn": [kept(noop), kept(fails), lambda: functools.partial(noop, 1)],
    "future": [future],
    "timeout": [kept(0.01), kept("1s"), kept(-1)],
    "threshold": [kept(0.01), kept(0)],
    "wait": [kept(0.0), kept(False)],
    "limit": [kept(1), kept(100)],
    "offset": [kept(0)],
    "status": [kept("all"), kept("completed"), kept(["running", "queued"])],
    "states": [kept("unread"), kept("told")],
    "until": [kept("any"), kept("all")],
    "stream": [kept("both"), kept("stdout")],
    "data": [kept("words\n"), kept(b"bytes")],
    "text": [kept("yes")],
    "line": [kept("/tasks"), kept("/tasks list"), kept("/todo")],
    "prompt": [kept("go on")],
    "command": [kept("true"), kept(["true"])],
    "name": [kept("nobody/there"), kept("explore"), kept("start_task"), kept("tool")],
    "form": [kept("openai"), kept("mcp")],
    "dialect": [kept("llxprt"), kept("jaato"), kept("psi"), kept("meantime"), kept("asyncagents")],
    "inline": [lambda: InlineLimits(10, 10), lambda: InlineLimits(Mute(), 2**70)],  # type: ignore[arg-type]
    "limits": [lambda: ProcessLimits(open_files=64)],
    "context": [lambda: [Line(role="user", text="hi")], lambda: [Line(role=Mute(), text=None)]],  # type: ignore[arg-type]
    "message": [kept("hello"), lambda: Message("user", ())],
    "notice": [kept(None)],
    "host": [Listening],
    "tasks": [kept("keep"), kept("own"), kept("all"), kept("cancel")],
    "commands": [kept(Shell)],
    "tools": [lambda: {"noop": noop}],
    "agents": [kept(["explore"]), kept({"explore": "looks"})],
    "tool": [kept("noop")],
    "size": [kept((24, 80))],
    "cwd": [kept("/")],
    "env": [lambda: {"A": "b"}, lambda: {"A": None}, lambda: {"A": "\ud800"}, lambda: {"\ud800": "a"}],
    "beat": [kept(lambda *_: None)],
    "write": [kept(noop)],
}

SAFE = st.characters(exclude_characters="/\\<>|&;`$(){}*?!~#'\"", exclude_categories=())
RANDOM = st.one_of(
    st.integers(),
    st.floats(),
    st.text(SAFE, max_size=20),
    st.binary(max_size=20),
    st.lists(st.one_of(st.integers(), st.text(SAFE, max_size=5), st.none()), max_size=3),
    st.dictionaries(st.text(SAFE, max_size=5), st.one_of(st.integers(), st.floats(), st.none()), max_size=3),
)
