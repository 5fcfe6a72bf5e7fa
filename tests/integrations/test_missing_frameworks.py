"""A framework that is not installed is named, with the command that installs it."""

from __future__ import annotations

import importlib
import sys

import pytest

from meantime.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("adapter", "package"),
    [
        ("openai_agents", "agents"),
        ("langchain", "langchain"),
        ("google_adk", "google.adk"),
        ("claude_agent_sdk", "claude_agent_sdk"),
        ("agent_framework", "agent_framework"),
        ("pydantic_ai", "pydantic_ai"),
    ],
)
def test_a_framework_that_is_not_installed_is_named(
    adapter: str, package: str, monkeypatch: pytest.MonkeyPatch
):
    name = f"meantime.integrations.{adapter}"
    for loaded in [one for one in sys.modules if one.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match="is not installed") as problem:
        _ = importlib.import_module(name).Talk
    assert problem.value.hint == f"pip install 'meantime[{adapter.replace('_', '-')}]'"


def test_a_name_that_an_adapter_does_not_have_is_an_attribute_error():
    assert not hasattr(importlib.import_module("meantime.integrations.langchain"), "Nobody")
