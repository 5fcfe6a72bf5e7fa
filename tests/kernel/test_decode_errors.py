"""Data that does not fit its struct is one error of ours, worded by the caller."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Struct

from meantime.kernel.decode_errors import MOST_TEXT, Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput


class Given(Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str = ""
    port: Annotated[int, Meta(ge=1)] = 1
    inner: dict[str, int] = {}


def mismatch_of(value: Any) -> Mismatch:
    found: list[Mismatch] = []

    def error(mismatch: Mismatch) -> InvalidInput:
        found.append(mismatch)
        return InvalidInput(f"It is not right: {mismatch.text}.")

    with pytest.raises(InvalidInput, match="It is not right"), mismatch_raises(error):
        msgspec.convert(value, Given)
    return found[0]


def test_the_field_is_named_as_on_the_wire():
    assert mismatch_of({"firstName": 5}).field == "firstName"
    assert mismatch_of({"inner": {"a": "b"}}).field == "inner"  # of the struct that was asked for
    assert mismatch_of([]).field == ""


def test_a_wrong_type_and_a_broken_constraint_are_told_apart():
    assert mismatch_of({"port": "1"}).is_type
    assert not mismatch_of({"port": 0}).is_type


def test_an_unknown_field_is_said_to_be_one():
    assert mismatch_of({"nobody": 1}).is_unknown
    assert not mismatch_of({"port": 0}).is_unknown


def test_a_name_that_was_given_is_shown_short_and_printable():
    text = mismatch_of({"x" * 10_000: 1}).text
    assert len(text) <= MOST_TEXT
    text.encode()


def test_a_name_that_is_not_unicode_is_an_error_too():
    assert "lone surrogate" in mismatch_of({"\ud800": 1}).text


def test_a_value_that_fits_passes():
    with mismatch_raises(lambda mismatch: InvalidInput(mismatch.text)):
        assert msgspec.convert({"port": 7}, Given).port == 7
