"""How long a run may take: what was asked, else the default, never over the maximum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.errors import InvalidInput
from meantime.kernel.timeouts import UNBOUNDED, check, resolve

seconds = st.floats(0.001, 1e9) | st.just(UNBOUNDED)


@pytest.mark.behaviour("L13", "R22")
def test_what_was_asked_is_given():
    assert resolve(60, default=900, maximum=1800).seconds == 60.0


@pytest.mark.behaviour("L13")
def test_the_default_holds_where_nothing_was_asked():
    assert resolve(None, default=900, maximum=1800).seconds == 900.0


@pytest.mark.behaviour("L13")
def test_nothing_asked_and_no_default_is_unbounded():
    assert resolve(None).seconds is None


@pytest.mark.behaviour("L13", "R22")
def test_the_maximum_is_a_ceiling_and_no_default():
    assert resolve(None, default=300, maximum=1800).seconds == 300.0


@pytest.mark.behaviour("L13")
def test_minus_one_is_as_long_as_the_maximum_allows():
    assert resolve(-1, default=900, maximum=1800).seconds == 1800.0


@pytest.mark.behaviour("L13", "R22")
def test_minus_one_is_unbounded_only_if_the_maximum_is_too():
    assert resolve(-1, default=900, maximum=-1).seconds is None


@pytest.mark.behaviour("L13")
def test_at_the_maximum_is_not_reduced():
    assert resolve(1800, maximum=1800) == (1800.0, "")


@pytest.mark.behaviour("L13")
def test_a_reduced_request_says_so():
    timeout = resolve(3600, maximum=1800)
    assert timeout.seconds == 1800.0
    assert timeout.note == "3600 s were asked for; 1800 s is the maximum."


@pytest.mark.behaviour("L13")
def test_a_reduced_default_was_not_asked_for():
    assert "asked" not in resolve(None, default=900, maximum=600).note


@pytest.mark.behaviour("L13")
def test_fractions_are_fine():
    assert resolve(0.25).seconds == 0.25


@pytest.mark.behaviour("L13", "R22")
@pytest.mark.parametrize("asked", [0, 0.0, -0.5, -2, float("nan"), float("inf"), float("-inf"), 1e11])
def test_impossible_timeouts_are_refused(asked):
    with pytest.raises(InvalidInput, match="seconds above 0, or -1"):
        resolve(asked)


@pytest.mark.behaviour("L13")
@pytest.mark.parametrize("asked", [True, "60", b"1", [60]])
def test_a_timeout_is_a_number(asked):
    with pytest.raises(InvalidInput, match="number of seconds"):
        resolve(asked)


@pytest.mark.behaviour("L13")
def test_an_impossible_maximum_is_refused_too():
    with pytest.raises(InvalidInput):
        resolve(60, maximum=0)


@pytest.mark.behaviour("L13")
def test_a_number_too_big_for_a_float_is_refused():
    with pytest.raises(InvalidInput):
        check(10**400)


@pytest.mark.behaviour("L13")
@given(st.none() | seconds, seconds, seconds)
def test_nothing_goes_over_the_maximum(asked, default, maximum):
    timeout = resolve(asked, default, maximum)
    if maximum != UNBOUNDED:
        assert timeout.seconds is not None
        assert timeout.seconds <= maximum


@pytest.mark.behaviour("L13")
@given(st.none() | seconds, seconds, seconds)
def test_a_note_comes_exactly_with_a_reduction(asked, default, maximum):
    timeout = resolve(asked, default, maximum)
    wanted = default if asked is None else asked
    assert bool(timeout.note) is (wanted != UNBOUNDED and timeout.seconds != wanted)
