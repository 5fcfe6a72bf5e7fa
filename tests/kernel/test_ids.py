"""Ids: random, typed by people as prefixes, checked at the door."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import CROCKFORD, ENTROPY, bare, check_id, crockford, display, prefix_end, task_id

entropy = st.binary(min_size=ENTROPY, max_size=ENTROPY)
ids = entropy.map(task_id)


@pytest.mark.behaviour("F8")
def test_an_id_is_ten_characters_after_its_prefix():
    assert task_id(bytes(ENTROPY)) == "t_0000000000"
    assert task_id(b"\xff" * ENTROPY) == "t_zzzzzzzzzz"


@pytest.mark.behaviour("F8")
@given(entropy)
def test_every_letter_takes_five_bits_of_its_own(taken):
    """So that ids are spread evenly: 50 bits of what the system gave."""
    letters = task_id(taken).removeprefix("t_")
    assert [CROCKFORD.index(letter) for letter in letters] == [byte % 32 for byte in taken]


@pytest.mark.behaviour("F8")
@given(entropy)
def test_letters_that_look_alike_are_not_used(number):
    assert set(crockford(number)) <= set(CROCKFORD)
    assert not set("ilou") & set(CROCKFORD)


@pytest.mark.behaviour("F8")
@given(ids)
def test_our_own_ids_pass_our_own_door(id):
    assert check_id(id, "a task id") == id


@pytest.mark.behaviour("F8")
@pytest.mark.parametrize("id", ["a", "conv-1", "call_7:x.y", "x" * 128])
def test_a_hosts_own_ids_are_welcome(id):
    assert check_id(id, "a thread id") == id


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize("id", ["", "a b", "a/b", "a\n", "é", "\x00", "x" * 129, "\ud800", "../etc"])
def test_a_bad_id_is_refused_with_what_to_do(id):
    with pytest.raises(InvalidInput, match="letters, digits") as caught:
        check_id(id, "a thread id")
    assert caught.value.code == "invalid_input"
    assert str(caught.value).encode()  # and the text itself can be stored and sent


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize("value", [None, 7, b"abc", ["a"]])
def test_an_id_is_a_string(value):
    with pytest.raises(InvalidInput, match="must be a string"):
        check_id(value, "a thread id")


@pytest.mark.behaviour("F10")
def test_people_see_eight_characters():
    assert display("t_2qx7m4kd9a") == "2qx7m4kd"


@pytest.mark.behaviour("F10")
def test_siblings_that_collide_make_it_longer():
    assert display("t_2qx7m4kd9a", ["t_2qx7m4kd0z"]) == "2qx7m4kd9"


@pytest.mark.behaviour("F10")
def test_a_task_does_not_collide_with_itself():
    assert display("t_2qx7m4kd9a", ["t_2qx7m4kd9a"]) == "2qx7m4kd"


@pytest.mark.behaviour("F10")
def test_an_id_of_the_host_may_be_shorter():
    assert display("job-1", ["job-12"]) == "job-1"


@pytest.mark.behaviour("F10")
@given(ids, st.lists(ids, max_size=5), st.integers(0, 9))
def test_no_sibling_shares_what_is_shown(id, others, shared):
    """The siblings are made alike on purpose: random ones never collide."""
    siblings = [id[: 2 + shared] + other[2 + shared :] for other in others]
    shown = display(id, siblings)
    assert len(shown) >= 8
    assert bare(id).startswith(shown)
    assert not [other for other in siblings if other != id and bare(other).startswith(shown)]


@pytest.mark.behaviour("F10")
def test_an_id_without_our_prefix_is_shown_apart():
    assert display("t_2qx7m4kd9a", ["2qx7m4kd9a"]) != display("2qx7m4kd9a", ["t_2qx7m4kd9a"])


@pytest.mark.behaviour("F11")
def test_people_may_leave_out_our_prefix():
    assert bare("t_2qx") == bare("2qx") == "2qx"


@pytest.mark.behaviour("F11")
@given(ids, st.integers(1, 12))
def test_a_prefix_finds_its_id_as_a_range(id, length):
    prefix = id[:length]
    assert prefix <= id < prefix_end(prefix)


@pytest.mark.behaviour("F11")
@given(ids, ids, st.integers(3, 12))
def test_a_prefix_finds_nothing_else(id, other, length):
    prefix = id[:length]
    assert (prefix <= other < prefix_end(prefix)) is other.startswith(prefix)
