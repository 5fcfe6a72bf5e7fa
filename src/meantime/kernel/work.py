"""Work that users hand off: `Call(fn, *args)`, `Tool(name, arguments)`, … Each gives the Work to store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from inspect import isclass, isfunction
from sys import intern
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .argument_checks import check_kind, check_unicode, has_methods, shown
from .errors import InvalidInput, MeantimeError
from .model import Json, Work
from .payloads import as_text, jsonable, short
from .plain_text import plain

P = ParamSpec("P")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)
MAX_META = 16_384  # bytes of `meta`, as JSON
MAX_INPUT = 1_000_000  # bytes of arguments kept in the ledger; more can be run, but not run again


class Order(NamedTuple):
    """The Work to store, and the live thing to run, which only this process has."""

    work: Work
    target: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  a NamedTuple's default; nobody changes it

    def with_environment(self, environment: dict[str, str] | None) -> Order:
        """A command that starts from its caller's environment, and not from its owner's. That is not
        stored, so it could not be started again: without it, it is another command."""
        if environment is None:
            return self
        kwargs = {**self.kwargs, "environment": environment}
        return self._replace(work=replace(self.work, faithful=False), kwargs=kwargs)

    def for_worker(self) -> Order:
        """A command for another machine: it starts from the environment there, with the variables that were
        named. So it can be started again, unless it has such variables or its stdin is not text."""
        given = cast("dict[str, Any]", self.work.input or {})
        kwargs = {name: value for name, value in self.kwargs.items() if name != "environment"}
        faithful = not given.get("env") and "stdin_bytes" not in given
        return self._replace(work=replace(self.work, faithful=faithful), kwargs=kwargs)


class OrderOf(Order, Generic[T_co]):
    """An order whose result has this type, for type checkers: `Handle.result()` gives it back."""

    __slots__ = ()


class Call(Generic[T_co]):
    """A Python function with its arguments, sync or async. Type checkers compare the arguments with the
    function's own."""

    __slots__ = ("args", "fn", "kwargs")

    @overload
    def __init__(
        self: Call[R], fn: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> None: ...

    @overload
    def __init__(self: Call[R], fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> None: ...

    def __init__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        if not callable(fn):
            raise InvalidInput(
                f"Call(...) takes a function first, not {type(fn).__name__}.",
                hint="Hand over the function and its arguments apart: Call(fn, 1, 2), not Call(fn(1, 2)).",
            )
        self.fn = fn
        self.args = args
        self.kwargs = kwargs

    def order(self) -> OrderOf[T_co]:
        """The work as the runtime stores it, with the live function beside it."""
        stored: dict[str, Any] = {}
        # What is bound to the function is not stored, so it could not be called again after a restart.
        faithful = not hasattr(self.fn, "func") and getattr(self.fn, "__self__", None) is None
        for name, given in (("args", self.args), ("kwargs", self.kwargs)):
            if given:
                stored[name], same = jsonable(given, exact=True)
                faithful = faithful and same
        if stored and len(msgspec.json.encode(stored)) > MAX_INPUT:
            stored, faithful = {"too_big": short(as_text(stored))}, False
        work = Work("call", function_name(self.fn), stored or None, faithful)
        if not self.kwargs:
            return OrderOf(work, self.fn, self.args)  # not with an empty dict of its own, while it runs
        return OrderOf(work, self.fn, self.args, self.kwargs)

    def __repr__(self) -> str:
        return f"Call({function_name(self.fn)})"


class Agent:
    """A subagent by its name, with the prompt it starts from; a runner for agents must be there."""

    __slots__ = ("input", "name", "prompt")

    def __init__(self, name: str, prompt: str, **input: Any) -> None:
        self.name = _text(name, "an agent's name")
        self.prompt = _text(prompt, "an agent's prompt")
        self.input = input

    def order(self) -> OrderOf[Json]:
        """The work as the runtime stores it."""
        stored, faithful = jsonable({**self.input, "prompt": self.prompt}, exact=True)
        check_input(stored, "An agent's prompt and input")
        return OrderOf(Work("agent", self.name, stored, faithful))

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"


def check_input(stored: Json, what: str) -> None:
    """Messages to an agent are kept: it continues from them after a restart."""
    size = len(msgspec.json.encode(stored))
    if size > MAX_INPUT:
        raise InvalidInput(
            f"{what} have {size} bytes; at most {MAX_INPUT} are kept.",
            hint="Put what is long into a file, and name it in the prompt.",
            code="too_big",
        )


class Tool:
    """A tool of a configured MCP server, as "server/tool", with its arguments."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: Mapping[str, Any] | None = None) -> None:
        self.name = _text(name, "a tool's name")
        server, _, tool = self.name.partition("/")
        if not server or not tool:
            raise InvalidInput(
                f"{shown(self.name)} does not name a tool of a server.",
                hint='Write Tool("server/tool", {…}).',
            )
        given: Any = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise InvalidInput(f"A tool's arguments are a dict, not {type(given).__name__}.")
        self.arguments, faithful = jsonable(cast("Mapping[str, Any]", given))
        if not faithful:
            raise InvalidInput(
                f"The arguments of {shown(self.name)} are not JSON.",
                hint="Give texts, numbers, booleans, None, lists and dicts of them.",
            )

    def order(self) -> OrderOf[Json]:
        """The work as the runtime stores it."""
        stored, faithful = self.arguments or None, True
        if stored and len(msgspec.json.encode(stored)) > MAX_INPUT:
            stored, faithful = {"too_big": short(as_text(stored))}, False
        return OrderOf(Work("tool", self.name, stored, faithful), kwargs={"arguments": self.arguments})

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


class Orderable(Protocol[T_co]):
    """Anything that can be handed off, by the type of its result."""

    def order(self) -> OrderOf[T_co]: ...


NAME_IT = (
    'An agent is named: Meantime.open(…, agents={"explore": agent}), '
    'then thread.start(Agent("explore", "…")).'
)


def order_of(work: Any, *mistaken: object) -> Order:
    """Work to hand over: anything with an `order`. Arguments of a function belong into its Call."""
    kind = type(work).__name__
    if has_methods(work, "order") and not mistaken:
        return _ordered(work, kind)
    if mistaken or (callable(work) and "agent" not in kind.lower()):
        name = work.__name__ if isfunction(work) or isclass(work) else "fn"
        arguments = ", ".join((name, *map(shown, mistaken)))
        raise InvalidInput(f"{name} is a function, not work.", hint=f"Write start(Call({arguments})).")
    hint = NAME_IT if "agent" in kind.lower() else 'Hand over Call(fn, *args) or Shell("ls -l").'
    raise InvalidInput(f"{kind} is not work.", hint=hint)


def _ordered(work: Any, kind: str) -> Order:
    try:
        order = work.order()
    except MeantimeError:
        raise
    except Exception as problem:  # of a class of the caller's own
        raise InvalidInput(f"{kind}.order() failed: {type(problem).__name__}.") from problem
    return check_kind(order, Order, f"The result of {kind}.order()")


def function_name(fn: Callable[..., Any]) -> str:
    """`module:qualname`, enough to find it again after a restart where it can be imported."""
    fn = getattr(fn, "func", fn)  # functools.partial
    module = getattr(fn, "__module__", None) or "?"
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return intern(f"{module}:{name}")  # one text for all tasks of a function, while there are any


def check_meta(meta: Any, what: str = "meta") -> dict[str, Json]:
    """Data that a caller wants to have kept with its task."""
    if not isinstance(meta, dict):
        raise InvalidInput(f"{what} must be a dict, not {type(meta).__name__}.")
    if not meta:
        return {}
    kept = jsonable(cast("dict[Any, Any]", meta))
    if not kept.faithful:
        raise InvalidInput(
            f"{what} holds something that is not JSON.",
            hint="Keep texts as keys, and texts, numbers, lists and dicts as values.",
        )
    size = len(msgspec.json.encode(kept.value))
    if size > MAX_META:
        raise InvalidInput(
            f"{what} has {size} bytes as JSON; at most {MAX_META} are kept.",
            hint="Keep what is big in a file of yours, and its name here.",
        )
    return kept.value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not (value := plain(value)).strip():
        raise InvalidInput(f"{what} must be a text that is not empty.")
    return check_unicode(value, what)


class ToolInfo(Struct, frozen=True):
    """A tool of an MCP server, as an agent is told of it."""

    server: str
    name: str
    description: str = ""
    input_schema: Json = None
    as_task: bool = False  # by the rules of 2025-11-25, it may be asked to answer with a task

    @property
    def full_name(self) -> str:
        """The name that `Tool(…)` takes."""
        return f"{self.server}/{self.name}"
