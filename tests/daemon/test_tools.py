"""Modules that the configuration names: their functions can be started by anyone, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from meantime import Meantime, MeantimeError
from meantime.app.connected_catalog import ConnectedWorks
from meantime.ports.tasks import Options
from runtimes import client_of

from .conftest import Place

pytestmark = pytest.mark.processes

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
    until(lambda: aside.exists() and aside.stat().st_size > 3_000_000, "the long log is put aside")
    until(place.home.log.exists, "the log is opened anew, which is right after that")
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
    place.wait(task["id"])
    assert place.ask("GET", f"/v1/tasks/{task['id']}/result") == {"result": "HEAR ME"}


@pytest.mark.anyio
@pytest.mark.parametrize("is_older", [False, True], ids=["of the same version", "of an older version"])
async def test_a_connected_process_starts_them_through_a_daemon(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_older: bool
) -> None:
    """An older daemon has no catalog on its link, and is asked over HTTP."""
    (tmp_path / "loud_tools.py").write_text(TOOL)
    place.configure('tools = ["loud_tools"]\n[http]\nport = 0\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MEANTIME_HOME", str(place.home.folder))
    place.up()
    async with Meantime.connect(start=False) as mt:
        client = client_of(mt)
        assert client.has_catalog
        client.has_catalog = not is_older
        works = ConnectedWorks(client)
        assert (await works.agents(), list(await works.registered_tools())) == (None, ["shout"])
        options = Options(id="t1", description="loud", timeout=600.0)
        task = await works.start_tool("a", "shout", {"words": "hear me"}, options)
        assert (task.id, task.thread, task.title) == ("t1", "a", "loud")
        await mt.thread("a").wait("t1", timeout=LIMIT)
        assert await mt.thread("a").result("t1") == "HEAR ME"
        with pytest.raises(MeantimeError, match="No tool 'nope' is registered here"):
            await works.start_tool("a", "nope", {}, Options())
