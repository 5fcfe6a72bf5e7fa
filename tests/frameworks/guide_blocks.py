"""Runs the Python blocks of a guide, each as a program of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
BLOCKS = re.compile(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_guide(name: str) -> None:
    page = (GUIDES / name).read_text("utf-8")
    found = BLOCKS.findall(page)
    assert found, "the page has no code"
    assert len(found) == page.count("```python"), "each block says what it prints"
    for code, prints in found:
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ran.stdout == prints, ran.stderr
