"""`@background`: a plain function that can be handed off by name, with a JSON schema of its arguments."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from meantime.execution.context import UnrecordedContext
from meantime.kernel.argument_checks import check_text, shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.work import Call, function_name
from meantime.ports.runner import CURRENT, DIRECT, Context

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

MOST_TEXT = 100_000  # characters of a name or a description
REGISTRY: dict[str, BackgroundFunction[..., Any]] = {}  # what a restart can find again


@contextmanager
def _direct(context: Context) -> Generator[None]:
    token = DIRECT.set(context)
    try:
        yield
    finally:
        DIRECT.reset(token)


async def _awaited(context: Context, running: Coroutine[Any, Any, T]) -> T:
    with _direct(context):
        return await running


def _decodable(kind: Any) -> Any:
    """The annotation, or Any where msgspec does not know its type: such an argument comes as it was given."""
    try:
        msgspec.json.schema(kind)
    except Exception:  # of an annotation of the caller's own, too
        return Any
    return kind


def _default(value: Any) -> Any:
    """A default that is not JSON, or that could be changed, stays out of the schema."""
    try:
        msgspec.to_builtins(value, str_keys=True)
        msgspec.defstruct("Default", [("value", Any, value)])
    except Exception:
        return msgspec.field(default_factory=lambda: value)
    return value


class BackgroundFunction(Generic[P, R_co]):
    """Calls through to the function; `work(...)` makes the order for a background run of it."""

    def __init__(
        self, fn: Callable[P, R_co], *, name: str | None = None, description: str | None = None
    ) -> None:
        try:
            self.signature = inspect.signature(fn)
        except Exception:  # it is not one, or is written in C, or is an object of the caller's own
            raise InvalidInput(
                f"@background takes a function that says what it takes, not {shown(fn)}.",
                hint="Wrap it in a function of your own.",
            ) from None
        for what, text in (("name", name), ("description", description)):
            if text is not None:
                check_text(text, what, MOST_TEXT)
        self.fn = fn
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        self.description = description if description is not None else inspect.getdoc(fn) or ""
        update_wrapper(self, fn)
        self._schema: dict[str, Any] | None = None
        self._takes: type[msgspec.Struct] | None = None
        REGISTRY[function_name(fn)] = self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Calls the function itself. Outside of a task `current()` works in it, and records nothing."""
        if CURRENT.get(None) is not None:
            return self.fn(*args, **kwargs)
        context = UnrecordedContext()
        with _direct(context):
            found = self.fn(*args, **kwargs)
        return cast("R_co", _awaited(context, found)) if inspect.iscoroutine(found) else found

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method, it is bound like any function."""
        return self if instance is None else partial(cast("Any", self), instance)

    @overload
    def work(
        self: BackgroundFunction[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> Call[T]: ...

    @overload
    def work(self, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]: ...

    def work(self, *args: Any, **kwargs: Any) -> Call[Any]:
        """The order for a background run, for `thread.start`."""
        return Call(self, *args, **kwargs)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A wrong argument is refused before anything is recorded."""
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise InvalidInput(f"{self.name}{self.signature}: {problem}.") from None

    @property
    def schema(self) -> dict[str, Any]:
        """The arguments as a JSON schema of one object."""
        if self._schema is None:
            self._schema = self._described()
        return self._schema

    @property
    def takes(self) -> type[msgspec.Struct]:
        """The struct of its arguments, for calls from a model: a field is a parameter."""
        if self._takes is None:
            self._takes = self._struct()
        return self._takes

    def _struct(self) -> type[msgspec.Struct]:
        hints = typing.get_type_hints(self.fn)
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            kind = _decodable(hints.get(parameter.name, Any))
            if parameter.default is parameter.empty:
                fields.append((parameter.name, kind))
            else:
                fields.append((parameter.name, kind, _default(parameter.default)))
        return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=True)

    def _described(self) -> dict[str, Any]:
        whole = msgspec.json.schema(self.takes)
        definitions = dict(whole["$defs"])
        own = definitions.pop(whole["$ref"].rpartition("/")[2])
        own.pop("title", None)
        return {**own, "$defs": definitions} if definitions else own

    @property
    def tool(self) -> dict[str, Any]:
        """Name, description and input schema, as tool-calling models want them."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


@overload
def background(fn: Callable[P, R], /) -> BackgroundFunction[P, R]: ...


@overload
def background(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[P, R]], BackgroundFunction[P, R]]: ...


def background(
    fn: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> Any:
    """Marks a function as one that agents may hand off, with or without arguments: `@background`.

    fn: the function.
    name: what it is called; by default the function's own name.
    description: what it does; by default its docstring.
    """
    if fn is not None:
        return BackgroundFunction(fn)

    def decorate(fn: Callable[P, R]) -> BackgroundFunction[P, R]:
        return BackgroundFunction(fn, name=name, description=description)

    return decorate
