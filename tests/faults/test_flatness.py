"""What counts as flat: pure functions over samples."""

from __future__ import annotations

import random

import pytest

from .flatness import MEASURES, WAL_MOST, Sample, flatness

pytestmark = pytest.mark.faults

HOUR = 3_600.0
WARM_UP = 90.0


def samples(**grows: float) -> list[Sample]:
    """An hour with a daemon that is killed every 20 minutes; each measure has noise, and grows by so much."""
    rng, found = random.Random(7), list[Sample]()
    for at in range(0, 3_600, 5):
        life, age = divmod(at, 1_200)
        sizes = {"rss": 60e6, "descriptors": 40.0, "threads": 6.0, "wal": 2e6, "disk": 20e6}
        warm = min(1.0, (age + 10) / 60)  # a young daemon is smaller
        for name, size in sizes.items():
            since = age if MEASURES[name].by_life else at
            grown = grows.get(name, 0.0) * since / HOUR
            sizes[name] = size * (warm if MEASURES[name].by_life else 1.0) * rng.uniform(0.95, 1.05) + grown
        found.append(Sample(float(at), life, float(age), *(int(size) for size in sizes.values())))
    return found


def test_noise_and_a_warm_up_in_every_life_are_flat():
    assert all(one.flat for one in flatness(samples(), HOUR, WARM_UP).values())


@pytest.mark.parametrize(
    ("name", "grows"), [("rss", 12e6), ("descriptors", 12.0), ("threads", 6.0), ("wal", 12e6), ("disk", 12e6)]
)
def test_what_grows_is_found_though_kills_hide_it(name: str, grows: float):
    found = flatness(samples(**{name: grows}), HOUR, WARM_UP)
    assert [each for each, one in found.items() if not one.flat] == [name]
    assert found[name].growth == pytest.approx(grows, rel=0.3)


def test_a_wal_that_is_big_is_not_flat():
    big = [one._replace(wal=WAL_MOST + 1) for one in samples()]
    assert not flatness(big, HOUR, WARM_UP)["wal"].flat


def test_too_few_samples_are_not_flat():
    assert not any(one.flat for one in flatness(samples()[:20], HOUR, WARM_UP).values())
