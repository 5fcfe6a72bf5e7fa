"""The examples of the guide run and print what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import examples

from meantime.testing.talk import ToolCall

from .claude_site import options_for
from .scripted_api import ScriptedAPI


def test_the_example_runs_and_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: ScriptedAPI
):
    for name, value in options_for(tmp_path, api.url).env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "project")
    api.steps = [ToolCall("run_tests", {"folder": "src"}), "All 128 tests of src pass."]
    (example,) = examples("frameworks.md", "Claude Agent SDK")
    assert example.run() == example.prints
    assert api.requests[1].results == ["src: 128 passed"]
