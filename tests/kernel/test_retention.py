"""How much a thread lists. That the untold never leave the listing is the stores' contract, and is
proved there (meantime.testing.store) and by seed 004's B6 to B8."""

from __future__ import annotations

import pytest

from meantime.kernel.limits import Retention


@pytest.mark.behaviour("I14")
def test_a_thread_lists_twenty_ended_tasks():
    assert Retention().hot == 20
