"""The unmodified servers of npm and PyPI, where `make servers` puts them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / ".servers"
NODE, PYTHON = FOLDER / "node_modules" / ".bin", FOLDER / "python" / "bin"
EVERYTHING = (str(NODE / "mcp-server-everything"), "stdio")
FETCH = (str(PYTHON / "mcp-server-fetch"), "--ignore-robots-txt", "--allow-private-ips")
FASTMCP = Path(__file__).parent / "servers" / "fastmcp_server.py"
# On CI they must be there, and the tests fail without them.
needed = pytest.mark.skipif(
    not (FOLDER / ".ready").exists() and os.environ.get("CI") != "true",
    reason="the reference servers are not installed: make servers",
)
