"""How long ago something began, for an owner that was not there then."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime.ports.clock import age
from meantime.system import platform
from meantime.system.platform import linux
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio
HERE = "3f0c9a52-7d1e-4b6a-9c33-0123456789ab"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boot_id").write_text(f"{HERE}\n")
    monkeypatch.setattr(linux, "BOOT_ID", str(tmp_path / "boot_id"))


@pytest.mark.parametrize("boot", [HERE, HERE.replace("-", "")[:12]])
async def test_within_one_start_of_the_machine_a_jump_of_the_wall_clock_does_not_count(boot: str):
    clock = FakeClock()
    began, began_at = clock.monotonic(), clock.now()
    await clock.advance(5)
    clock.jump(3600)
    assert age(clock, boot, began, began_at) == 5.0


@pytest.mark.parametrize("boot", ["", "a0000000-0000-4000-8000-000000000000", HERE[:4]])
def test_after_another_only_the_wall_clock_is_left(boot: str):
    clock = FakeClock()
    assert age(clock, boot, clock.monotonic(), clock.now() - 40) == 40.0


def test_without_a_note_of_the_monotonic_clock_only_the_wall_clock_is_left():
    clock = FakeClock()
    assert age(clock, HERE, None, clock.now() - 40) == 40.0


def test_an_age_is_never_below_nothing():
    clock = FakeClock()
    assert age(clock, "", None, clock.now() + 40) == 0.0
    assert age(clock, HERE, clock.monotonic() + 40, None) == 0.0
    assert age(clock, "", None, None) == 0.0


def test_where_the_machine_does_not_say_nothing_is_of_the_same_start(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(linux, "BOOT_ID", "/nowhere")
    assert platform.short_boot(12) == ""
    assert not platform.is_this_boot("")
    assert not platform.is_this_boot(HERE)
