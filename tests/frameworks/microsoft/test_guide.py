"""The examples of the guide run and print what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from agent_framework import FileSessionStore
from guide import examples

from meantime.testing.talk import ToolCall

from .scripted_client import ScriptedClient

pytestmark = pytest.mark.filterwarnings("ignore:.*experimental.*")


def test_the_examples_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = examples("frameworks.md", "agent-framework")
    assert len(found) == 2
    for example in found:
        app = ModuleType("my_app")
        client = ScriptedClient()
        client.steps = [ToolCall("run_tests", {"folder": "src"}), "All 128 tests of src pass."]
        vars(app).update(client=client, store=FileSessionStore(tmp_path))
        monkeypatch.setitem(sys.modules, "my_app", app)
        assert example.run() == example.prints
        assert client.requests[1].results == ["src: 128 passed"]
