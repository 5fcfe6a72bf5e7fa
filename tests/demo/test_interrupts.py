"""Ctrl+C, pressed again and again: the last words are seen all the same."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.waiting import until

from .terminal import Session

SAYS = """
import os
from pathlib import Path
from meantime.app.demo.signals import Signals, keep_output
from tests.waiting import until
folder = Path(os.environ["TMPDIR"])
with Signals(), keep_output():
    print("x" * 6_000 + "Stopped.", flush=True)
    (folder / "said").touch()
    until((folder / "go").exists, "Ctrl+C was pressed")
"""


def test_last_words_that_a_terminal_has_not_read_are_not_dropped(tmp_path: Path):
    """The kernel keeps 4,095 bytes for the terminal, and drops more than that with each Ctrl+C."""
    with Session(tmp_path, program=[sys.executable, "-c", SAYS]) as session:
        until((tmp_path / "said").exists, "the last word is written")
        session.type("\x03")
        (tmp_path / "go").touch()
        assert session.end() == 0
        assert "Stopped." in session.text
        assert session.mode_now() == session.mode
