"""Every public name says what it does, and explains its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

import meantime

pytestmark = pytest.mark.docs

FEW = 2  # a function with fewer parameters says what it takes in its one line


def public() -> Iterator[tuple[str, Any]]:
    """Every name of `meantime`, and every public method and property of its classes."""
    for name in meantime.__all__:
        thing = getattr(meantime, name)
        yield name, thing
        for base in thing.__mro__ if inspect.isclass(thing) else ():
            if base.__module__.startswith("meantime"):
                yield from ((f"{name}.{member}", fn) for member, fn in members(base))


def members(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, found in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(found, property) and found.fget is not None:
            yield name, found.fget
        elif isinstance(found, cached_property):
            yield name, found.func
        elif isinstance(found, classmethod | staticmethod):
            yield name, found.__func__
        elif inspect.isfunction(found):
            yield name, found


def docstring(thing: Any) -> str:
    """Its own: not one that a class inherits, nor the one that a tuple or a struct makes up."""
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return "" if own is None or own.startswith(f"{thing.__name__}(") else own


def unexplained(fn: Any) -> list[str]:
    """Its parameters that the docstring does not name."""
    if not inspect.isfunction(fn):
        return []
    names = [name for name in inspect.signature(fn).parameters if name not in ("self", "cls")]
    said = docstring(fn)
    return [name for name in names if not re.search(rf"\b{name}\b", said)] if len(names) >= FEW else []


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_docstring(name: str):
    assert docstring(PUBLIC[name]), f"{name} has no docstring: say what it does in one line"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_names_every_argument(name: str):
    assert unexplained(PUBLIC[name]) == [], f"add a line `argument: meaning` to the docstring of {name}"


def test_an_argument_without_a_word_is_noticed():
    def told(self: object, ref: str, by: str, wait: bool) -> None:
        """Asks a task to stop; `wait` answers with its ending."""

    assert unexplained(told) == ["ref", "by"]
    assert docstring(type("Silent", (meantime.MeantimeError,), {})) == ""
