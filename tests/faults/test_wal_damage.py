"""The WAL of a killed owner: damage at or before the mark is named, and a torn end after it is not."""

from __future__ import annotations

import random
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from meantime import LedgerDamaged
from meantime.stores.sqlite import checkpoints, wal_index, wal_mark

from .damaged import EVERY, Killed, found

FRAME = wal_index.FRAME_HEADER + 4096
Damage = Callable[[Killed, random.Random], object]


@pytest.fixture(scope="module", params=[1 << 30, 500_000], ids=["first WAL", "WAL that began anew"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    killed = Killed(tmp_path_factory.mktemp("killed"), checkpoint=request.param)
    number = checkpoints.number_in(killed.ledger) or 0
    assert killed.claimed.needs == number + 1, "the last commits are not in the database yet"
    assert (number > 2) == (request.param == 500_000)
    return killed


@pytest.fixture(autouse=True)
def undamaged(killed: Killed) -> Iterator[None]:
    killed.put_back()
    yield
    killed.put_back()


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def flip(killed: Killed, rng: random.Random) -> None:
    content = killed.wal.read_bytes()
    at = rng.randrange(killed.used)
    overwrite(killed.wal, at, bytes([content[at] ^ 1 << rng.randrange(8)]))


def garbage(killed: Killed, rng: random.Random) -> None:
    overwrite(killed.wal, rng.randrange(killed.used - 4096), rng.randbytes(rng.randrange(64, 4096)))


def zeros(killed: Killed, rng: random.Random) -> None:
    overwrite(killed.wal, rng.randrange(killed.used - FRAME), bytes(FRAME))


def cut(killed: Killed, rng: random.Random) -> None:
    with killed.wal.open("r+b") as file:
        file.truncate(rng.randrange(killed.used))


def deletion(killed: Killed, rng: random.Random) -> None:
    killed.wal.unlink()


def emptying(killed: Killed, rng: random.Random) -> None:
    killed.wal.write_bytes(b"")


def older_copy(killed: Killed, rng: random.Random) -> None:
    killed.wal.write_bytes(killed.early)


def foreign_wal(killed: Killed, rng: random.Random) -> None:
    """A whole one, that adds up, of another database."""
    other = killed.ledger.with_name("other.db")
    db = sqlite3.connect(other)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE t (x)")
    db.commit()
    content = Path(f"{other}-wal").read_bytes()
    db.close()
    other.unlink()
    killed.wal.write_bytes(content)


DAMAGES: tuple[Damage, ...] = (flip, garbage, zeros, cut, deletion, emptying, older_copy, foreign_wal)
RANDOM = {flip, garbage, zeros, cut}


@pytest.mark.faults
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_to_the_wal_of_a_killed_owner_is_named_and_set_aside(killed: Killed, damage: Damage) -> None:
    for seed in range(4 if damage in RANDOM else 1):
        killed.put_back()
        damage(killed, random.Random(seed))
        left = killed.wal.read_bytes() if killed.wal.exists() else None
        for _ in range(2):
            with pytest.raises(LedgerDamaged, match="set aside"):
                found(killed.ledger)
        (aside,) = killed.ledger.parent.glob("ledger.db.damaged-*")
        kept = aside / killed.wal.name
        assert (kept.read_bytes() if left is not None else None) == left, (
            "it was changed before it was set aside"
        )


def test_a_wal_that_is_whole_gives_back_everything(killed: Killed) -> None:
    assert killed.mark.exists()
    assert found(killed.ledger) == EVERY
    assert not killed.mark.exists(), "a ledger that was closed needs no mark"


TAILS = {"a few bytes": b"x" * 10, "zeros": bytes(FRAME), "garbage": random.Random(1).randbytes(3 * FRAME)}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_torn_end_after_the_mark_is_not_damage(killed: Killed, tail: bytes) -> None:
    overwrite(killed.wal, killed.used, tail)
    assert found(killed.ledger) == EVERY


def test_a_wal_that_another_program_brought_into_the_database_is_not_missed(killed: Killed) -> None:
    db = sqlite3.connect(killed.ledger)
    db.execute("SELECT count(*) FROM tasks").fetchone()
    db.close()
    assert not killed.wal.exists()
    assert found(killed.ledger) == EVERY


def test_an_older_mark_that_a_power_cut_left_claims_nothing_that_is_missing(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is not synced: the disk may have one of an earlier WAL, which is in the database since."""
    restart(monkeypatch)
    killed.mark.write_bytes(killed.early_mark)
    assert found(killed.ledger) == EVERY


def test_a_salvage_does_not_bring_back_what_an_earlier_wal_had(killed: Killed) -> None:
    """Behind the end of a WAL that began anew there are older frames, of pages that are newer by now."""
    overwrite(killed.wal, 16, b"broken!!")  # the salt in its header
    with pytest.raises(LedgerDamaged):
        found(killed.ledger)
    assert found(killed.ledger, salvage=True) == EVERY


def test_a_salvage_takes_nothing_of_an_older_wal(killed: Killed) -> None:
    """As somebody puts in place with a copy: its pages are older than those of the database."""
    killed.wal.write_bytes(killed.early)
    with_it = found(killed.ledger, salvage=True)
    killed.put_back()
    killed.wal.unlink()
    assert with_it >= found(killed.ledger, salvage=True)


@pytest.mark.parametrize("later", ["in the same boot", "after a restart of the machine"])
def test_a_checkpoint_that_was_cut_off_does_not_vouch_for_a_wal_that_is_gone(
    killed: Killed, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    """It may have written the number of checkpoints into the database, and other pages not."""
    if later != "in the same boot":
        restart(monkeypatch)
    killed.wal.unlink()
    monkeypatch.setattr(wal_mark, "number_in", lambda ledger: killed.claimed.needs)
    with pytest.raises(LedgerDamaged):
        found(killed.ledger)


def first_mark(killed: Killed) -> None:
    """As earlier versions wrote it, by the same machine in the same boot."""
    point = killed.claimed
    first, magic = wal_mark._FIRST_POINT, wal_mark._FIRST_MAGIC
    body = first.pack(magic, wal_mark._boot_id(), point.salt, point.checksum, *point[2:6])
    killed.mark.write_bytes(2 * (body + wal_mark._SUM.pack(zlib.crc32(body))))


def test_a_mark_of_an_earlier_version_is_read(killed: Killed) -> None:
    first_mark(killed)
    assert found(killed.ledger) == EVERY
    killed.put_back()
    first_mark(killed)
    cut(killed, random.Random(3))
    with pytest.raises(LedgerDamaged):
        found(killed.ledger)


def test_without_its_mark_a_ledger_opens_as_it_did_in_earlier_versions(killed: Killed) -> None:
    killed.mark.unlink()
    flip(killed, random.Random(1))
    assert found(killed.ledger) < EVERY


@pytest.mark.parametrize("content", [b"", b"x" * 40, bytes(200)], ids=["empty", "short", "zeros"])
def test_a_mark_that_cannot_be_read_claims_nothing(killed: Killed, content: bytes) -> None:
    killed.mark.write_bytes(content)
    assert found(killed.ledger) == EVERY


def test_a_mark_that_an_earlier_version_did_not_keep_claims_nothing(killed: Killed) -> None:
    """It has written to the ledger since, and its lock does not say that there is a mark."""
    deletion(killed, random.Random())
    Path(f"{killed.ledger}.lock").write_text('{"clean": false, "made": true}')
    assert found(killed.ledger) < EVERY


def test_what_was_synced_counts_after_a_restart_of_the_machine(
    killed: Killed, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart(monkeypatch)
    cut(killed, random.Random(2))
    with pytest.raises(LedgerDamaged):
        found(killed.ledger)


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal_mark, "boot", lambda: "00000000-0000-4000-8000-000000000000")


@pytest.mark.faults
def test_a_fast_ledger_is_promised_nothing_over_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = Killed(tmp_path, "fast")
    killed.wal.unlink()
    with pytest.raises(LedgerDamaged):
        found(killed.ledger, durability="fast")
    killed.put_back()
    killed.wal.unlink()
    restart(monkeypatch)
    assert found(killed.ledger, durability="fast") < EVERY
