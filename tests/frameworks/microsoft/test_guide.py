"""The examples of the guide run as they stand, and print what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guide import examples

pytestmark = pytest.mark.filterwarnings("ignore:.*experimental.*")


def test_the_examples_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = examples("frameworks.md", "agent-framework")
    assert len(found) == 2
    for example in found:
        names: dict[str, Any] = {}
        assert example.run(names) == example.prints
        assert names["Scripted"].steps == [], "the model was asked twice: the tool's answer is among it"


def test_a_pasted_example_prints_nothing_else_but_that_its_store_is_experimental(tmp_path: Path):
    first, second = examples("frameworks.md", "agent-framework")
    printed, errors = first.pasted(tmp_path)
    assert printed == first.prints, errors
    assert "FileSessionStore" in errors
    assert "Traceback" not in errors, errors
    printed, errors = second.pasted(tmp_path)
    assert printed == second.prints, errors
