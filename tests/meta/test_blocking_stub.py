"""src/meantime/blocking.pyi says what the async classes say today."""

from __future__ import annotations

import ast

import pytest
import write_blocking_stub as tool

from meantime import blocking

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def stub() -> str:
    return tool.write()


def test_the_stub_is_fresh(stub):
    assert tool.STUB.read_text("utf-8") == stub, "stale: run `python tools/write_blocking_stub.py`"


def test_nothing_in_it_is_async(stub):
    assert "async " not in stub
    assert "Async" not in stub
    assert "__aenter__" not in stub


def test_what_it_names_is_really_there(stub):
    """Types that promise a method which the proxy does not have would be worse than none."""
    classes = [node for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)]
    assert [node.name for node in classes if not hasattr(blocking, node.name)] == []
    for node in classes:
        methods = [member.name for member in node.body if isinstance(member, ast.FunctionDef)]
        missing = [name for name in methods if not hasattr(getattr(blocking, node.name), name)]
        assert missing == []


def test_all_is_what_the_stub_declares(stub):
    kinds = (ast.ClassDef, ast.FunctionDef)
    declared = {node.name for node in ast.parse(stub).body if isinstance(node, kinds)}
    assert set(vars(blocking)["__all__"]) == declared
