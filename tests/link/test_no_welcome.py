"""An owner that accepts a connection and says nothing."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from meantime import Disconnected, Meantime
from meantime.client import connection

pytestmark = pytest.mark.anyio


async def test_the_error_says_how_long_was_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "WELCOME_WITHIN", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "link.sock"))
        silent.listen()
        with pytest.raises(Disconnected, match=r"it did not welcome us within 0\.2 s\."):
            async with Meantime.connect(tmp_path / "link.sock", start=False):
                pass
