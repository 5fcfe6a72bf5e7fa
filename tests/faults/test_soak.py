"""The soak in short: it measures, goes on after a kill, and notices what is planted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from . import strace
from .adoption import clear
from .soak import Sizes, Soak

pytestmark = pytest.mark.faults
SEED = int(os.environ.get("MEANTIME_FAULT_SEED") or 7)
SHORT = Sizes.of(0.3)


def test_a_short_soak_that_is_killed_in_the_middle_goes_on(tmp_path: Path):
    words = ["--minutes", "0.3", "--folder", str(tmp_path), "--seed", str(SEED)]
    program = [sys.executable, "-m", "tests.faults.soak", *words]
    report = tmp_path / "report.json"

    def played() -> float:
        return json.loads(report.read_text())["played"] if report.exists() else 0.0

    try:
        first = subprocess.Popen(program, cwd=strace.ROOT, stdout=subprocess.DEVNULL)
        until(lambda: played() > 3 or first.poll() is not None, "it is at its load", limit=3 * LIMIT)
        first.send_signal(signal.SIGKILL)
        first.wait()
        killed_at = played()
        assert killed_at > 3
        second = subprocess.run(program, cwd=strace.ROOT, capture_output=True, text=True, timeout=4 * LIMIT)
        found = json.loads(report.read_text())
    finally:
        clear(tmp_path)
    assert second.returncode == 0, second.stdout + second.stderr
    assert (found["parts"], found["finished"], found["clean"], found["seed"]) == (2, True, True, SEED)
    assert found["played"] == pytest.approx(SHORT.whole)
    assert [one[0] for one in found["samples"]] == sorted(one[0] for one in found["samples"])
    assert any(one[0] <= killed_at for one in found["samples"]), "what was sampled before the kill is kept"
    assert found["kills"]["daemon"] >= 1
    assert found["kills"]["client"] >= 1
    assert found["counts"]["told"] >= found["counts"]["accepted"] > 0
    assert {name for name in found["counts"] if name.startswith("kind ")} == {
        f"kind {kind}" for kind in ("quick", "gated", "sync", "call", "shell", "nap", "agent")
    }


def test_a_daemon_that_keeps_something_of_every_ending_is_not_flat(tmp_path: Path):
    try:
        report = Soak(tmp_path, SHORT, SEED, plant="ended_kept").run()
    finally:
        clear(tmp_path)
    assert not report.problems, report.summary()
    assert {"rss", "descriptors"} <= {name for name, one in report.flat.items() if not one.flat}
    assert not report.clean
