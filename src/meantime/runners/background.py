"""`@background`: a plain function that can be handed off by name, with a JSON schema of its arguments."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

import msgspec

from meantime.kernel.errors import InvalidInput
from meantime.kernel.work import Call, function_name

P = ParamSpec("P")
R = TypeVar("R")

REGISTRY: dict[str, BackgroundFunction[..., Any]] = {}  # what a restart can find again


class BackgroundFunction(Generic[P, R]):
    """Calls through to the function; `work(...)` makes the order for a background run of it."""

    def __init__(
        self, fn: Callable[P, R], *, name: str | None = None, description: str | None = None
    ) -> None:
        self.fn = fn
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        self.description = description if description is not None else inspect.getdoc(fn) or ""
        self.signature = inspect.signature(fn)
        update_wrapper(self, fn)
        REGISTRY[function_name(fn)] = self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def work(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        return Call(self, *args, **kwargs)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A wrong argument is refused before anything is recorded."""
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise InvalidInput(f"{self.name}{self.signature}: {problem}.") from None

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The arguments as a JSON schema of one object."""
        hints = typing.get_type_hints(self.fn)
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            kind = hints.get(parameter.name, Any)
            if parameter.default is parameter.empty:
                fields.append((parameter.name, kind))
            else:
                fields.append((parameter.name, kind, parameter.default))
        struct = msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=True)
        whole = msgspec.json.schema(struct)
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
    """Marks a function as one that agents may hand off. With or without arguments."""
    if fn is not None:
        return BackgroundFunction(fn)

    def decorate(fn: Callable[P, R]) -> BackgroundFunction[P, R]:
        return BackgroundFunction(fn, name=name, description=description)

    return decorate
