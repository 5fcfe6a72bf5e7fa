"""Migrations that have landed are never edited: ledgers out there were made by them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

FOLDER = Path(__file__).resolve().parents[2] / "src" / "meantime" / "stores" / "sqlite" / "migrations"
# Every migration that has landed, in order. One that lands gets its line here (sha256sum of the file).
LANDED = {
    "001_heart.sql": "053bad4413b05d449c069b8705624722b43659c9343273d4cd7d7f15666ad421",
    "002_looking.sql": "00aada65ea60a18593dd1dda7c3ad11f403cc6e2229aecc82116b769e1f5ce44",
    "003_numbers.sql": "79d4a2723f99334f466b9a2065593b950f8298d6fd2dd0231fd27f87cb6e0684",
    "004_following.sql": "c5cffbf284f163511250941d00f8788b98e5621bd27f30df0aa4621f852ff729",
    "005_counters.sql": "b985f9dd5ad826ffcebd7e2248d3acd16937d60e314d0d56153d83c3b8fa0b95",
    "006_rows.sql": "0e1e1ee70f98fa12c8260f6c0fdc3eb49d3536c4d2adb153a408a88dffcd3fc1",
    "007_notice_sources.sql": "6d082a223ce01ca1f54272439267c5059aa140ce11d529da793cc5e65ea16f4e",
    "008_schedules.sql": "f1adabb6a4b0c7a08074673ecbe8fcbd9062c0a40b3e425dd0688e6af394a5f8",
    "009_plain_checks.sql": "92a7c6bb7aa9c6ec40167ea21090721c284d8eed799a3a42fcdd5c4a4ef4f867",
    "010_stood.sql": "4d3b257ba5bdb84977dd9cbab362cf50525db4ca06d12ed91405400fb7b05c32",
}


def test_a_landed_migration_is_as_it_landed():
    for name, landed in LANDED.items():
        now = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        assert now == landed, (
            f"{name} has landed: ledgers were made by it, and would never get this change. Undo it, and "
            f"add a new migration with the number {len(list(FOLDER.glob('*.sql'))) + 1:03}."
        )


def test_migrations_are_numbered_without_a_gap():
    numbers = sorted(int(file.name.partition("_")[0]) for file in FOLDER.glob("*.sql"))
    assert numbers == list(range(1, len(numbers) + 1))
    assert sorted(LANDED) == [file.name for file in sorted(FOLDER.glob("*.sql"))][: len(LANDED)]
