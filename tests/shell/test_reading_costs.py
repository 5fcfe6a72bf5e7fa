"""A command's start and a followed line cost what they need, and no look twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from meantime import Meantime, Shell
from meantime.runners.shell import output_ring, provenance
from meantime.runners.shell.output_ring import Spool, State

pytestmark = pytest.mark.anyio


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The state files that were read."""
    seen: list[Path] = []
    look: Callable[[Path], State | None] = output_ring.look

    def counted(base: Path) -> State | None:
        seen.append(base)
        return look(base)

    monkeypatch.setattr(output_ring, "look", counted)
    return seen


@pytest.mark.parametrize(("line", "most"), [("echo one", 2), ("echo one; echo two >&2", 4)])
async def test_output_on_one_stream_is_read_with_fewer_looks(
    tmp_path: Path, looks: list[Path], line: str, most: int
):
    """Where both have spoken, their counters must be of one moment: then the state is read once more."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        await (await mt.thread("a").start(Shell(line))).wait()
        (state,) = (tmp_path / "work.db.commands").glob("*.state")
        looks.clear()
        assert b"one\n" in Spool(state.with_suffix("")).read("both", 0, 100).data
    assert 2 <= len(looks) <= most


async def test_a_state_that_is_longer_than_a_state_is_none(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await (await mt.thread("a").start(Shell("echo one"))).wait()
        (state,) = (tmp_path / "work.db.commands").glob("*.state")
        base = state.with_suffix("")
        assert output_ring.look(base) is not None
        with state.open("ab") as file:
            file.write(b"x")
        assert output_ring.look(base) is None
        assert output_ring.look(base.with_name("none")) is None


async def test_the_id_of_the_boot_is_read_once_and_not_for_each_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    reads: list[int] = []
    really = provenance.this_boot
    monkeypatch.setattr(provenance, "this_boot", lambda: reads.append(1) or really())
    async with Meantime.open(tmp_path / "work.db") as mt:
        opened = len(reads)
        for _ in range(3):
            await (await mt.thread("a").start(Shell("true"))).wait()
        assert len(reads) == opened
