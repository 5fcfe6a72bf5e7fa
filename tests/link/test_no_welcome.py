"""An owner that accepts a connection and says nothing."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from meantime import Disconnected, Meantime

pytestmark = pytest.mark.anyio


@pytest.mark.breadth
async def test_the_error_says_how_long_was_waited(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "link.sock"))
        silent.listen()
        with pytest.raises(Disconnected, match=r"within 0\.2 s: it does not answer\."):
            async with Meantime.connect(tmp_path / "link.sock", start=False, patience=0.2):
                pass
