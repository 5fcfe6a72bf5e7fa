"""An owner that refuses a connection before it has read a word: its client is told why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.refusing import refusing
from tests.waiting import until_async

from meantime import Disconnected, Meantime, Refused
from meantime.client import owner_connection
from meantime.client.owner_connection import decode
from meantime.link import wire_errors
from meantime.link.frame_connection import Wire
from meantime.link.frames import Bye, Ping, Refuse
from meantime.link.verb_messages import encode
from meantime.system.platform import peer_credentials

pytestmark = pytest.mark.anyio


def refusal(code: str) -> bytes:
    error = Refused("This owner takes no more.", code=code, hint="Close one first.")
    return encode(Refuse(wire_errors.to_wire(error))) + b"\n"


@pytest.mark.parametrize("code", ["too_many", "other_version"])
async def test_its_refusal_is_read_after_the_connection_was_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
):
    with refusing(refusal(code), path=tmp_path / "link.sock") as server:

        def slowly(connected: Any) -> tuple[int | None, int | None]:
            server.wait()
            return peer_credentials(connected)

        monkeypatch.setattr(owner_connection, "peer_credentials", slowly)
        with pytest.raises(Refused, match=r"This owner takes no more\. Close one first\.") as refused:
            await Meantime.connect(tmp_path / "link.sock", start=False)
    assert refused.value.code == code


async def test_an_owner_that_closes_without_a_word_is_nobody(tmp_path: Path):
    closed = pytest.raises(Disconnected, match="The owner closed the connection")
    with refusing(b"", path=tmp_path / "link.sock"), closed:
        await Meantime.connect(tmp_path / "link.sock", start=False, patience=0.1)


async def test_the_last_words_of_the_other_side_arrive_though_a_write_finds_it_gone(tmp_path: Path):
    received: list[object] = []
    lost = asyncio.Event()
    wire: Wire[Any] = Wire(decode, received.append, lost.set)
    words = b"".join(encode(frame) + b"\n" for frame in (Ping(), Bye()))
    with refusing(words + b"not a frame\n" + encode(Ping()) + b"\n", path=tmp_path / "link.sock") as server:
        await asyncio.get_running_loop().create_unix_connection(lambda: wire, server.address)
        server.wait()
        wire.send(Ping())
        wire.flush()
        await until_async(lost.is_set, "the connection is lost")
    assert received == [Ping(), Bye()]
