"""A log that only grows: a crash cuts its last record, and no other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from meantime.integrations.agent_host.append_log import AppendLog


class Entry(Struct):
    name: str


def entry(name: str) -> bytes:
    return msgspec.json.encode(Entry(name))


def test_a_record_that_was_cut_does_not_spoil_the_next(tmp_path: Path):
    path = tmp_path / "log"
    AppendLog(path).append(entry("walnut"))
    with path.open("ab") as file:
        file.write(entry("hazel")[:-3])
    log = AppendLog(path)
    assert [one.name for one in log.readable(Entry)] == ["walnut"]
    log.append(entry("oak"))
    assert [one.name for one in AppendLog(path).readable(Entry)] == ["walnut", "oak"]


@pytest.mark.parametrize("foreign", [b"", b"{", b"[]", b'{"other": 1}', b"\xff"])
def test_records_of_another_kind_are_left_out(tmp_path: Path, foreign: bytes):
    log = AppendLog(tmp_path / "log")
    log.append(entry("walnut"), foreign, entry("oak"))
    assert [one.name for one in log.readable(Entry)] == ["walnut", "oak"]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path):
    assert list(AppendLog(tmp_path / "log").readable(Entry)) == []


def test_only_its_owner_can_read_it(tmp_path: Path):
    AppendLog(tmp_path / "log").append(entry("walnut"))
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
