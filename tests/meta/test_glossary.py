"""The glossary is true and complete: every public class, and every class name that has two meanings."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

import meantime

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "meantime"
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
WORDS, _, SHARED = PAGE.partition("## One name, several classes")
CLASS = re.compile(r"`([A-Z]\w*)")


def test_every_public_class_stands_beside_its_word():
    public = {name for name in meantime.__all__ if inspect.isclass(getattr(meantime, name))}
    errors = {name for name in public if issubclass(getattr(meantime, name), BaseException)}
    assert public - errors - {"Meantime"} - set(CLASS.findall(WORDS)) == set()


def test_every_class_that_the_glossary_names_is_there():
    assert set(CLASS.findall(WORDS)) - set(_packages_of_classes()) == set()


def test_a_class_name_that_two_packages_share_is_explained():
    """So that a new one is a choice, and not an accident."""
    shared = {name for name, packages in _packages_of_classes().items() if len(packages) > 1}
    explained = set(CLASS.findall(SHARED))
    assert shared - explained == set(), "rename one, or say in the glossary what each is"
    assert explained - shared == set(), "they are not shared any more"


def _packages_of_classes() -> dict[str, set[str]]:
    """Public twins in `blocking` are the same classes for code that is not async, and are not counted."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        package = "/".join(path.relative_to(SOURCE).parts[:-1][:2])
        for node in ast.parse(path.read_text("utf-8")).body:
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and path.name != "blocking.py"
            ):
                found[node.name].add(package)
    return found
