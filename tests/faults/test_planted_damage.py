"""The family of damage can fail: each planted bug is reported by the same judge, and none without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meantime.stores.sqlite import checksums, salvage, salvaged_rows
from meantime.stores.sqlite.wal_mark import WalMark

from . import damage, damage_kinds
from .damage_kinds import Damage
from .damage_world import World

pytestmark = pytest.mark.faults
SEEDS = range(30)
MANY = range(300)  # for a single bit: most make a row that does not decode, which anybody would notice


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("closed"), "closed")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("killed"), "killed")


def found(world: World, state: str, place: str, kind: Damage, seeds: range = SEEDS) -> Iterator[str]:
    for seed in seeds:
        yield from damage.play(damage.Case(state, place, kind, seed), world).problems


def test_without_a_plant_the_judge_is_silent(closed: World, killed: World) -> None:
    assert not list(found(closed, "closed", "database", damage_kinds.flip))
    assert not list(found(killed, "killed", "WAL", damage_kinds.cut))
    for world, state in ((closed, "closed"), (killed, "killed")):
        assert damage.play(damage.Case(state, "lock", damage_kinds.nothing, 0), world) == damage.Outcome(
            "harmless"
        )


def test_without_the_mark_a_cut_wal_loses(killed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WalMark, "missing", lambda mark, checkpoints: "")
    assert any("without a word" in problem for problem in found(killed, "killed", "WAL", damage_kinds.cut))


def test_a_mark_that_runs_ahead_of_its_commit_refuses_a_sound_ledger(tmp_path: Path) -> None:
    world = World(tmp_path, "killed", plant="mark_first")
    assert any(
        "nothing was damaged" in problem for problem in found(world, "killed", "lock", damage_kinds.nothing)
    )


def test_a_salvage_without_notices_loses(killed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = salvaged_rows.Salvaged._keep

    def without(found: Any, table: str, rows: Any) -> None:
        keep(found, table, iter(()) if table == "notices" else rows)

    monkeypatch.setattr(salvaged_rows.Salvaged, "_keep", without)
    monkeypatch.setattr(salvage, "_add_notice", lambda *_: None)
    assert any("was not told" in problem for problem in found(killed, "killed", "WAL", damage_kinds.zeros))


def test_without_checksums_a_flipped_bit_alters(closed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_FIELD", b"no field")
    for decode in (checksums.decode_task, checksums.decode_message):
        monkeypatch.setattr(decode.__self__, "_without", b"{")  # type: ignore[attr-defined]
    monkeypatch.setattr(checksums, "verify", lambda *_: None)
    problems = found(closed, "closed", "database", damage_kinds.flip, MANY)
    assert any(" and is " in problem for problem in problems)
