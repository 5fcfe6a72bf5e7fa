"""What must be refused: tests/meta/test_posix_tests.py runs this file, and looks that the run fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from meantime.system import bare_python
from meantime.system.platform import linux, linux_tree, posix


def test_a_module_of_meantime_is_refused():
    assert posix.stat(os.getpid()) is not None
    assert linux.stat(os.getpid()) is None
    assert linux_tree.children(os.getpid()) == []
    assert linux.missing_calls() != []
    assert Path(f"/proc/{os.getpid()}/stat").exists()  # the tests themselves may look
    assert not hasattr(os, "pidfd_open")


def test_it_is_refused_in_a_bare_python_as_well():
    code = f"{bare_python.BEGIN}; from meantime.system.platform import linux; print(linux.stat(1))"
    done = subprocess.run(bare_python.command(code), capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
