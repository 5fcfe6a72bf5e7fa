"""The example of the guide runs and prints what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guide import examples


def test_the_example_runs_and_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (example,) = examples("frameworks.md", "OpenAI Agents SDK")
    names: dict[str, Any] = {}
    assert example.run(names) == example.prints
    *_, result = names["model"].last_call.input
    assert result["output"] == "src: 128 passed"


def test_a_pasted_example_prints_nothing_about_a_key(tmp_path: Path):
    (example,) = examples("frameworks.md", "OpenAI Agents SDK")
    assert example.pasted(tmp_path) == (example.prints, "")
