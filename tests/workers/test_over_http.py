"""Workers as programs see them over HTTP: counters, who is there, and where a task runs."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, HttpDoor
from meantime.app.ledger_owner import LedgerOwner
from meantime.app.system_clock import SystemClock
from meantime.surfaces.http.http_settings import HttpSettings
from surfaces.http.listening import Listener

from . import jobs
from .conftest import PLACE, Site

pytestmark = pytest.mark.anyio
COUNTED = {
    "offered", "claimed", "denied", "refused_messages", "offered_again", "unclaimed", "unclaimed_age",
    "lost_silent", "lost_restarted", "lost_at_worker", "late_endings", "no_worker", "carrier_up",
    "pool.default",
}  # fmt: skip


async def test_counters_workers_and_places_are_in_stats_info_and_events(site: Site, tmp_path: Path):
    mt = await site.open()
    await site.worker()
    settings = HttpSettings(port=0, batch=0.0, folder=tmp_path / "http", version="0.1.0")
    async with (
        HttpDoor(mt._runtime, LedgerOwner(mt._owner.about), settings, SystemClock()) as door,
        httpx.AsyncClient(base_url=door.url, trust_env=False) as http,
        Listener(door) as stream,
    ):
        snapshot = await stream.hear()
        assert snapshot.data["stats"]["workers"]["pool.default"] == 1
        work = Call(jobs.waits_for, str(site.folder / "go"))
        handle = await mt.thread("a").start(work, place=PLACE)
        await until_async(lambda: site.workers["w1"].state.running, "the run is under way")
        while (said := await stream.hear()).data.get("worker") is None:
            assert (said.data["id"], said.data["place"]) == (handle.id, PLACE)
        assert said.data["worker"] == "w1"
        counts = (await http.get("/v1/stats")).json()["workers"]
        assert counts.keys() >= COUNTED
        assert (counts["offered"], counts["claimed"], counts["carrier_up"]) == (1, 1, 1)
        (worker,) = (await http.get("/v1/info")).json()["workers"]
        assert (worker["name"], worker["pool"], worker["slots"]) == ("w1", "default", 4)
        (site.folder / "go").touch()
        await handle.wait(LIMIT)
