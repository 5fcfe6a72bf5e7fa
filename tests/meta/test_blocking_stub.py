"""src/meantime/blocking.pyi says what the async classes say today."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from meantime import blocking

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_blocking_stub.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("write_blocking_stub", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stub(tool) -> str:
    return tool.write()


def test_the_stub_is_fresh(tool, stub):
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
