"""A few faults of every family, for every `make test-all`; `python -m tests.faults.run` makes all of them."""

from __future__ import annotations

import os
import random

import pytest

from . import strace
from .families import FAMILIES, SEED, Family

pytestmark = pytest.mark.faults

seed = int(os.environ.get(SEED) or random.randrange(1_000_000))
again = f"{SEED}={seed} pytest tests/faults/test_families.py"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.title.replace(" ", "_"))
def test_a_part_of(family: Family) -> None:
    why_not = family.missing()
    if why_not:
        assert not (strace.is_ci() and family.missing is strace.missing), why_not
        pytest.skip(why_not)
    family.play(seed, *family.part, again).check()
