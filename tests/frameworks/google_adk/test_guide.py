"""The code of docs/guides/google-adk.md runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import examples


def test_the_examples_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for example in examples("google-adk.md"):
        assert example.run() == example.prints


def test_a_pasted_example_says_nothing_of_token_usage(tmp_path: Path):
    for example in examples("google-adk.md"):
        printed, errors = example.pasted(tmp_path)
        assert printed == example.prints, errors
        assert "token usage" not in errors, errors
