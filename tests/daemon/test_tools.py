"""Modules that the configuration names: their functions can be started by anyone, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Place, eventually

TOOL = """
from meantime import background

@background
def shout(words: str) -> str:
    return words.upper()
"""


def test_one_that_prints_a_lot_does_not_fill_the_disk(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flood = "import threading\nthreading.Timer(1, print, ['x' * 3_000_000], {'flush': True}).start()\n"
    (tmp_path / "flooding_tools.py").write_text(flood)
    place.configure('tools = ["flooding_tools"]\n[http]\nport = 0\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place.up()
    aside = place.home.folder / "daemon.log.1"
    eventually(lambda: aside.exists() and aside.stat().st_size > 3_000_000)
    eventually(place.home.log.exists)  # it is opened anew right after that
    assert place.home.log.stat().st_size < 1_000_000


def test_functions_are_started_by_name(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud_tools.py").write_text(TOOL)
    (tmp_path / "broken_tools.py").write_text("import a_module_that_is_not_there\n")
    place.configure('tools = ["broken_tools", "loud_tools"]\n[http]\nport = 0\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place.up()
    assert "tools: broken_tools cannot be imported: ModuleNotFoundError" in place.log()

    (name,) = [
        tool["name"] if isinstance(tool, dict) else tool for tool in place.ask("GET", "/v1/info")["tools"]
    ]
    task = place.ask("POST", "/v1/tasks", {"tool": name, "arguments": {"words": "hear me"}})
    place.ask("GET", f"/v1/tasks/{task['id']}/wait?timeout=30")
    assert place.ask("GET", f"/v1/tasks/{task['id']}/result") == {"result": "HEAR ME"}
