"""P5, class B, for a host in any language: 0 lost, 0 doubled, in order, wherever the connection is cut,
and whenever the owner is killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from .foreign import CUTS, Cut, Host, Owner, post

pytestmark = pytest.mark.faults


@pytest.fixture
def owner(places: Path) -> Iterator[Owner]:
    owner = Owner(places)
    owner.start()
    yield owner
    owner.kill()


def start(folder: Path, *ids: str) -> list[str]:
    """One after the other, so that the order of their endings is known."""
    socket = folder / "http.sock"
    for id in ids:
        status, _ = post(socket, "/v1/tasks", {"thread": "conv-1", "command": ["true"], "id": id})
        assert status == 201
        status, found = post(socket, "/v1/wait", {"ids": [id], "timeout": LIMIT})
        assert found["done"], found
    return [f"{id}.1" for id in ids]


class Unlucky(Host):
    """Its owner is killed between an ack and its repetition."""

    owner: Owner

    def before_again(self) -> None:
        self.owner.restart()


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("killed", [False, True], ids=["", "and the owner is killed"])
@pytest.mark.parametrize("cut", CUTS)
def test_every_ending_is_told_once_wherever_the_connection_is_cut(
    places: Path, owner: Owner, cut: str, killed: bool
):
    told = start(places, "a", "b", "c")
    host = Unlucky(places, "conv-1") if killed else Host(places, "conv-1")
    if isinstance(host, Unlucky):
        host.owner = owner
    with suppress(Cut):
        host.turn(cut)
        assert cut.startswith("ack"), "only an ack is sent again by itself"
    if killed and not cut.startswith("ack"):
        owner.restart()
    Host(places, "conv-1").until_told(3)
    assert host.transcript() == told
    told += start(places, "d")
    Host(places, "conv-1").until_told(4)
    assert host.transcript() == told


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize(
    "seed", [pytest.param(0, marks=pytest.mark.core("the one host over HTTP that is cut off")), 1, 2]
)
def test_every_ending_is_told_once_over_random_cuts_and_restarts(places: Path, owner: Owner, seed: int):
    luck = random.Random(seed)
    told: list[str] = []
    for round in range(8):
        told += start(places, *(f"{round}-{number}" for number in range(luck.randrange(3))))
        with suppress(Cut):
            Host(places, "conv-1").turn(luck.choice([*CUTS, ""]))
        if luck.random() < 0.3:
            owner.restart()
    Host(places, "conv-1").until_told(len(told))
    assert Host(places, "conv-1").transcript() == told, f"seed {seed}"
