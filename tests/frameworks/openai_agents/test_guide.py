"""The example of the guide runs and prints what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from guide import examples

from meantime.testing.talk import ToolCall

from .openai_site import ScriptedModel


def test_the_example_runs_and_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples("frameworks.md", "OpenAI Agents SDK")
    app, model = ModuleType("my_app"), ScriptedModel()
    model.steps = [ToolCall("run_tests", {"folder": "src"}), "All 128 tests of src pass."]
    vars(app).update(model=model)
    monkeypatch.setitem(sys.modules, "my_app", app)
    assert example.run() == example.prints
    assert model.requests[1].results == ["src: 128 passed"]
