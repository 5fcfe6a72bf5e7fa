"""The first answer of a server: all that others may look for because of it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from meantime.surfaces.http.uvicorn_server import Serving

from .conftest import OpenDoor

pytestmark = pytest.mark.anyio


async def test_server_json_is_written_before_anything_is_answered(
    open_door: OpenDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whoever starts a daemon beside another is done with the first answer of the other's."""
    begin, there = Serving.begin, list[bool]()

    async def begun(*given: Any) -> Serving:
        there.append((tmp_path / "http" / "server.json").exists())
        return await begin(*given)

    monkeypatch.setattr(Serving, "begin", begun)
    await open_door()
    assert there == [True]
