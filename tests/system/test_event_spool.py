"""Events that a command leaves for its worker, where the machine has no file to open for a moment."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from meantime.system import event_spool
from meantime.system.event_spool import EventSpool


class Failing:
    """Files with this ending cannot be opened, until `stop`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ending: str, number: int) -> None:
        self.times, self._number = 0, number
        opening = os.open

        def failing(path: Any, *given: Any, **more: Any) -> int:
            if self._number and str(path).endswith(ending):
                self.times += 1
                raise OSError(self._number, os.strerror(self._number))
            return opening(path, *given, **more)

        monkeypatch.setattr(event_spool.os, "open", failing)

    def stop(self) -> None:
        self._number = 0


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM])
def test_an_event_that_cannot_be_opened_now_stays_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    spool = EventSpool(tmp_path)
    first = event_spool.leave(tmp_path, "one")
    failing = Failing(monkeypatch, f"{first}.event", number)
    event_spool.leave(tmp_path, "two")
    for look in (spool.first, spool.left):
        with pytest.raises(OSError, match=os.strerror(number)):
            look()
    failing.stop()
    found = spool.first()
    assert found is not None
    assert (found[0], found[2]) == (1, "one")
    assert [text for _, _, text in spool.left()] == ["one", "two"]


def test_a_link_in_place_of_an_event_is_removed_and_keeps_nothing_up(tmp_path: Path):
    (tmp_path / "0.event").symlink_to("/etc/passwd")
    event_spool.leave(tmp_path, "one")
    assert [text for _, _, text in EventSpool(tmp_path).left()] == ["one"]
    assert not (tmp_path / "0.event").is_symlink()


@pytest.mark.behaviour("P5")
def test_a_number_that_cannot_be_read_now_is_not_given_again(tmp_path: Path):
    """The owner would take the next event for a repetition."""
    life = EventSpool(tmp_path)
    for text in ("one", "two"):
        event_spool.leave(tmp_path, text)
    found = life.first()
    assert found is not None
    life.answer(found[1], {})
    next_life = EventSpool(tmp_path)
    kept = (tmp_path / "number").rename(tmp_path / "kept")
    (tmp_path / "number").mkdir()  # it cannot be read
    with pytest.raises(OSError, match="Is a directory"):
        next_life.first()
    (tmp_path / "number").rmdir()
    kept.rename(tmp_path / "number")
    found = next_life.first()
    assert found is not None
    assert (found[0], found[2]) == (2, "two")
