"""The environment that `make test-all` makes for MCP programs of another make."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / ".foreign"
PYTHON = str(FOLDER / "bin" / "python")

# On CI they must be there, and the tests fail without them.
needed = pytest.mark.skipif(
    not (FOLDER / ".ready").exists() and os.environ.get("CI") != "true",
    reason="fastmcp-tasks is not installed: make test-all FAMILIES=servers",
)
