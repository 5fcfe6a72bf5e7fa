"""Memory that threads of the daemon have freed is not kept, thread by thread."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from .conftest import Place

THREADS = 8
# Every thread allocates while the others do; glibc then says how many arenas it has made.
COUNT = f"""
import ctypes, tempfile, threading

def arenas():
    together = threading.Barrier({THREADS})

    def allocate():
        together.wait({LIMIT})
        for _ in range(200):
            held = [bytes(size) for size in range(1_000, 40_000, 1_000)]

    threads = [threading.Thread(target=allocate) for _ in range({THREADS})]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join({LIMIT})
    c = ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        report = ctypes.c_void_p(c.fopen(file.name.encode(), b"w"))
        c.malloc_info(0, report)
        c.fclose(report)
        return file.read().decode().count("<heap nr=")
"""
pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another C library than glibc"
)


def test_the_daemon_has_two_arenas_however_many_threads_it_has(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = (
        f"from meantime import background\n{COUNT}\n\n@background\ndef count() -> int:\n    return arenas()\n"
    )
    (tmp_path / "arena_tools.py").write_text(tool)
    place.configure('tools = ["arena_tools"]\n[http]\nport = 0\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place.up()
    task = place.ask("POST", "/v1/tasks", {"tool": "count", "arguments": {}})
    place.wait(task["id"])
    assert place.ask("GET", f"/v1/tasks/{task['id']}/result")["result"] <= 2


def test_a_program_without_the_limit_has_more() -> None:
    """So that the count above can fail."""
    said = subprocess.run(
        [sys.executable, "-c", f"{COUNT}\nprint(arenas())"], capture_output=True, text=True, timeout=2 * LIMIT
    )
    assert int(re.fullmatch(r"(\d+)\s*", said.stdout)[1]) > 2, said.stderr  # type: ignore[index]
