"""`meantime status`: its lines about others, counted as people count."""

from __future__ import annotations

from typing import Any

import pytest

from meantime.app.verbs.status import clients_row, workers_row

INFO: dict[str, Any] = {"version": "0.1.0"}
COUNTS = {"carrier_up": 1, "unclaimed": 0}


@pytest.mark.parametrize(("count", "said"), [(0, "0 workers"), (1, "1 worker"), (2, "2 workers")])
def test_workers_are_counted(count: int, said: str):
    info = {**INFO, "workers": [{"version": "0.1.0"}] * count}
    assert workers_row(info, COUNTS) == f"{said} · 0 offers unclaimed · carrier up"


def test_one_offer_and_one_lost_run_are_counted():
    row = workers_row(INFO, {**COUNTS, "unclaimed": 1, "lost_crash": 1})
    assert row == "0 workers · 1 offer unclaimed · 1 run lost · carrier up"


def test_hosts_and_executors_are_counted():
    assert clients_row({"hosts": [{}], "executors": []}) == "1 host · 0 executors · 0 watching"
