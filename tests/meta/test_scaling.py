"""The scaling suite, on few and small sizes: what has become quadratic is found before a release."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import scaling, worlds

pytestmark = [pytest.mark.anyio, pytest.mark.docs]

SIZES = (500, 4_000)
GENEROUS = 0.6  # over the slope of its class: two small sizes on a busy machine


@pytest.mark.parametrize("cost", [[1, 1, 1], [1, 10, 100], [1, 100, 10_000]])
def test_the_slope_of_a_curve_is_its_power(cost: list[int]):
    points = [(10**at, float(value)) for at, value in enumerate(cost, 3)]
    assert scaling.slope(points) == pytest.approx({1: 0, 100: 1, 10_000: 2}[cost[-1]])


def test_a_curve_that_is_too_steep_is_a_defect():
    found = {size: dict.fromkeys(scaling.OPERATIONS, 1e-3) for size in (1_000, 10_000)}
    assert not scaling.defects("active", found)
    found[10_000]["start"] = 1e-2
    assert list(scaling.defects("active", found)) == ["start"]


def test_every_operation_that_is_measured_has_its_class():
    for grown in worlds.GROWN:
        assert set(scaling.EXPECTED[grown.__name__]) <= set(scaling.OPERATIONS)
    assert len(scaling.EXPECTED) == len(worlds.GROWN)


@pytest.mark.parametrize("grown", worlds.GROWN, ids=lambda grown: grown.__name__)
async def test_nothing_grows_much_faster_than_its_class(grown, tmp_path: Path):
    """A defect is one that is found twice: a busy machine makes others."""
    first = await _found(grown, tmp_path, 1)
    again = await _found(grown, tmp_path, 2) if first else {}
    over = set(first) & set(again)
    assert not over, {name: (first[name], again[name]) for name in over}


async def _found(grown, folder: Path, attempt: int) -> dict[str, float]:
    costs: dict[int, worlds.Costs] = {}
    for size in SIZES:
        place = folder / f"{attempt}-{size}"
        place.mkdir()
        costs[size] = await worlds.measured(grown, place / "work.db", size)
    return scaling.defects(grown.__name__, costs, GENEROUS)
