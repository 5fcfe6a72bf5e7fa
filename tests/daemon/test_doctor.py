"""The doctor, beside a daemon that runs."""

from __future__ import annotations

import time

import pytest

from meantime.app.doctor import OK, WARN, Patient, examine, home_checks

from .conftest import Place


def test_a_daemon_that_runs_is_healthy_until_we_are_newer(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = place.up()
    patient = Patient(place.home, {}, time.time())
    rows = {row.name: row for row in examine(patient)}
    assert {row.level for row in rows.values()} == {OK}, rows
    assert f"process {pid}" in rows["daemon"].found
    assert "stale" not in rows

    monkeypatch.setattr(home_checks, "__version__", "99.0")
    (row,) = home_checks.daemon(patient)
    assert (row.level, row.todo) == (WARN, "meantime down --keep && meantime up; commands run on")
