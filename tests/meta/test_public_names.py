"""The public names: one list, and all of it is there."""

from __future__ import annotations

import ast
import inspect

import pytest

import meantime

pytestmark = pytest.mark.docs


def test_all_is_what_the_homes_say():
    assert sorted(meantime.__all__) == sorted(meantime._HOME)


def test_all_is_sorted_and_has_nothing_twice():
    assert len(set(meantime.__all__)) == len(meantime.__all__)
    assert meantime.__all__ == sorted(meantime.__all__, key=lambda name: (not name[0].isupper(), name))


@pytest.mark.parametrize("name", meantime.__all__)
def test_every_public_name_can_be_loaded(name: str):
    assert getattr(meantime, name) is not None
    assert name in dir(meantime)


def test_type_checkers_see_the_same_names():
    """The imports under TYPE_CHECKING are written by hand; __getattr__ would hide one that is missing."""
    tree = ast.parse(inspect.getsource(meantime))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.level]
    imported = {alias.name: node.module for node in imports for alias in node.names}
    assert imported == meantime._HOME


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Manager'"):
        meantime.Manager
