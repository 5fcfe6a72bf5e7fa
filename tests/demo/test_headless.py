"""`meantime demo` where nobody types: what it prints, what it promises, what it leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from . import left

PIECES = [
    "hash the library",
    "count its lines",
    "run a test suite",
    "ask the subagent",
    "check the settings",
    "count down",
]


def demo(folder: Path, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "meantime.app.demo", *options]
    env = {**os.environ, "TMPDIR": str(folder), **environ}
    env.pop("COLUMNS", None)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False)


@pytest.mark.core("the one demo without a terminal")
def test_json_is_one_object_that_is_true(tmp_path: Path):
    """The smoke test of the README."""
    done = demo(tmp_path, "--headless", "--json", "--keep", "--slow", "2", OPENAI_API_KEY="sk-not-used")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    check_pieces(said)
    check_ledger(said)
    shutil.rmtree(said["kept"])
    left.nothing(tmp_path)


@pytest.mark.processes
@pytest.mark.parametrize("options", [["--json"], ["--headless"]])
def test_where_nobody_types_the_prompt_is_not_loaded(options: list[str], tmp_path: Path):
    code = (
        "import atexit, sys; from meantime.app.main import main;"
        "atexit.register(lambda: sys.stderr.write(str('prompt_toolkit' in sys.modules))); main()"
    )
    command = [sys.executable, "-c", code, "demo", "--slow", "1", *options]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    assert (done.returncode, done.stderr) == (0, "False")


def check_pieces(said: dict[str, Any]) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", said["url"])
    assert [said[name] for name in ("handedOff", "told", "doubled", "lost", "inOrder")] == [6, 6, 0, 0, True]
    tasks = {task["title"]: task for task in said["tasks"]}
    assert list(tasks) == PIECES
    failed = tasks["check the settings"]
    assert (failed["status"], failed["exitCode"]) == ("failed", 1)
    codes = [
        task["exitCode"]
        for task in tasks.values()
        if (task["kind"], task["status"]) == ("shell", "completed")
    ]
    assert codes
    assert set(codes) == {0}
    assert {task["status"] for title, task in tasks.items() if task is not failed} == {"completed"}
    texts = {notice["task"]: notice["text"] for notice in said["notices"]}
    assert texts[failed["id"]].startswith("exit code 1: Expecting ':' delimiter")
    assert re.match(r"sha256 of [\d,]+ files: [0-9a-f]{16}…", texts[tasks["hash the library"]["id"]])
    assert int(texts[tasks["count its lines"]["id"]].split()[0]) > 100_000
    assert texts[tasks["run a test suite"]["id"]] == "OK"
    assert re.search(r"longest module .*[\d,]+ functions", texts[tasks["ask the subagent"]["id"]])
    children = tasks["ask the subagent"]["children"]
    assert [child["title"] for child in children] == ["find the longest module", "count the functions"]
    assert sorted(child["told"] for child in children) == [1, 2]
    assert said["subagent"]["told"] == said["subagent"]["handedOff"] == 2


def check_ledger(said: dict[str, Any]) -> None:
    """Not through us: the ledger itself knows in which order the runs ended, and what was told."""
    with sqlite3.connect(Path(said["kept"]) / "work.db") as ledger:
        ended = "SELECT task_id FROM events WHERE kind = 'ended' AND thread = ? ORDER BY seq"
        for thread, heard in (("demo", said["notices"]), ("demo.subagent", said["subagent"]["notices"])):
            assert [notice["task"] for notice in heard] == [id for (id,) in ledger.execute(ended, (thread,))]
            assert [notice["number"] for notice in heard] == list(range(1, len(heard) + 1))
            assert {notice["delivery"] for notice in heard} == {1}
        states = ledger.execute("SELECT state, count(*) FROM notices GROUP BY state").fetchall()
    ledger.close()
    assert states == [("told", 8)]


@pytest.mark.processes
def test_plain_lines_while_every_port_is_taken(tmp_path: Path):
    """In a pipe nobody is waited for; the door takes another port, and the folder goes."""
    with ExitStack() as held:
        first = ten_ports(held)
        done = demo(tmp_path, "--slow", "1", MEANTIME_API_PORT=str(first))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    port = re.search(r"^API: +http://127\.0\.0\.1:(\d+)/v1/tasks$", done.stdout, re.MULTILINE)
    assert port is not None
    assert int(port[1]) not in range(first, first + 10)
    told = re.findall(r"^  \[(\d)\] [✓✗] (.*?)  ", done.stdout, re.MULTILINE)
    assert [int(number) for number, _ in told] == [1, 2, 3, 4, 5, 6]
    assert sorted(title for _, title in told) == sorted(PIECES)
    assert re.search(
        r"^6 handed off, 6 told, 0 twice, in order\. \d+\.\d s in all\.$", done.stdout, re.MULTILINE
    )
    left.nothing(tmp_path)


def ten_ports(held: ExitStack) -> int:
    """Ten in a row that are taken from here on."""
    for first in range(20_000 + os.getpid() % 20_000, 60_000, 10):
        with ExitStack() as trying:
            try:
                for port in range(first, first + 10):
                    taken = trying.enter_context(socket.socket())
                    taken.bind(("127.0.0.1", port))
                    taken.listen()
            except OSError:
                continue
            held.enter_context(trying.pop_all())
            return first
    raise AssertionError("no ports")


@pytest.mark.parametrize("option", [["--slow", "0"], ["--slow", "soon"], ["--model", "x"], ["now"]])
def test_what_it_does_not_know(option: list[str], tmp_path: Path):
    done = demo(tmp_path, *option)
    assert done.returncode == 2
    assert done.stderr.startswith("meantime: ")
    assert "meantime demo --help" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_a_reader_that_leaves(tmp_path: Path):
    """`meantime demo | head -1`: everything is stopped, nobody sees a traceback."""
    command = f"{sys.executable} -m meantime.app.demo; echo $? >&2"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("Meantime ")
    process.stdout.close()
    assert process.stderr.read() == "141\n"
    process.stderr.close()
    process.wait(LIMIT)
    left.nothing(tmp_path)
