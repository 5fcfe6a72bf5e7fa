"""The gates at which commands of other tests wait."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from gates import Gate, open_gate

pytestmark = pytest.mark.docs


def test_a_command_goes_on_when_its_gate_is_opened(tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    with subprocess.Popen(["sh", "-c", f"{gate.wait}; echo on"], stdout=subprocess.PIPE) as command:
        gate.open()
        assert command.communicate(timeout=LIMIT)[0] == b"on\n"


def test_a_gate_at_which_nobody_waits_holds_a_test_for_a_limited_time(tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    with pytest.raises(AssertionError, match="a command waits at"):
        open_gate(gate.path, limit=0.1)
