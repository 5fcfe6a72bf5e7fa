"""The tests that are run once more: those that have failed, by the names that pytest knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import counted_tests
import failed_tests
import pytest
from tests.waiting import LIMIT

pytestmark = pytest.mark.docs

GROUPED = """
import pytest

@pytest.mark.xdist_group("a group")
@pytest.mark.parametrize("value", ["one@two"])
def test_grouped(value): assert not value

@pytest.mark.parametrize("value", ["one@two"])
def test_alone(value): assert not value

def test_passes(): pass
"""


def test_failed_tests_are_named_as_pytest_knows_them(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(GROUPED)
    first = [sys.executable, "-m", "pytest", "-q", "-n", "1", "--dist", "loadgroup", "-c", "/dev/null"]
    subprocess.run([*first, "--rootdir", "."], cwd=tmp_path, capture_output=True, check=False, timeout=LIMIT)
    record = tmp_path / ".pytest_cache/v/cache/lastfailed"
    assert any("@a group" in name for name in json.loads(record.read_text()))
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-c", "/dev/null", "--rootdir", "."]
    done = subprocess.run(
        [*again, *failed_tests.failed(record)], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert "2 failed" in done.stdout
    assert "passed" not in done.stdout


FAILING = """
import pytest

def test_passes(): pass

def test_fails(): raise AssertionError

@pytest.mark.parametrize("number", [1, 2])
def test_skipped(number): pytest.skip("no browser: none was found")
"""


def test_a_table_counts_what_passed_failed_and_was_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "test_it.py").write_text(FAILING)
    monkeypatch.setattr(counted_tests, "ROOT", tmp_path)
    monkeypatch.setattr(counted_tests, "FAMILIES", ())  # an option of ours
    options = ("-c", "/dev/null", "--rootdir", ".")
    found = counted_tests.counted([sys.executable], ["test_it.py"], tmp_path / "log", *options)
    assert found == (1, 1, 2, {"no browser: none was found": 2})


def test_a_run_that_broke_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counted_tests, "ROOT", tmp_path)
    monkeypatch.setattr(counted_tests, "FAMILIES", ())
    with pytest.raises(SystemExit, match="Look into"):
        counted_tests.counted([sys.executable], ["test_none.py"], tmp_path / "log", "-c", "/dev/null")


@pytest.mark.parametrize("count", [0, failed_tests.MOST + 1])
def test_nothing_is_run_again_after_a_run_that_broke(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    record = tmp_path / "lastfailed"
    record.write_text(json.dumps({f"test_it.py::test_{number}": True for number in range(count)}))
    monkeypatch.setattr(failed_tests, "RECORD", record)
    assert failed_tests.main() == 1
    assert capsys.readouterr().out == ""
