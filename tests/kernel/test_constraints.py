"""Constraints: declared on a field, checked in one go, and worded in one place."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pytest
from msgspec import Struct

from meantime.kernel.constraints import (
    AGE,
    DEPTH,
    FLAG,
    LIMIT,
    PORT,
    TIMEOUT,
    check_count,
    check_fields,
    constraints_of,
    one_of,
)
from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id


class Colour(StrEnum):
    RED = "red"


class Paint(Struct, frozen=True, kw_only=True):
    coats: Annotated[int, LIMIT] = 1
    colour: Annotated[str | None, one_of("red", "green")] = None
    name: Annotated[str | None, check_id] = None
    drying: Annotated[float, AGE] = 0.0
    note: str = ""  # anything


def test_fields_that_fit_are_the_same_struct():
    paint = Paint(coats=-1, colour="red", name="wall", drying=1.5, note="\0")
    assert check_fields(paint) is paint


def test_a_default_is_not_looked_at():
    assert check_fields(Paint()) == Paint()


def test_a_subclass_becomes_plain_data():
    class Length(float):
        pass

    checked = check_fields(Paint(colour=Colour.RED, drying=Length(2)))
    assert type(checked.colour) is str
    assert type(checked.drying) is float
    assert checked == Paint(colour="red", drying=2.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"coats": 0}, "coats=0 is not a limit. Give a whole number above 0, or -1 for none."),
        ({"coats": True}, "coats=True is not a limit. Give a whole number above 0, or -1 for none."),
        ({"colour": "blue"}, "colour='blue' is unknown. Use 'red' or 'green'."),
        ({"colour": 1}, "colour=1 is unknown. Use 'red' or 'green'."),
        (
            {"name": "a b"},
            "name 'a b' is not a valid id. Use 1 to 128 letters, digits, '.', '_', ':' or '-'.",
        ),
        ({"drying": float("nan")}, "nan is not an age in seconds. Give a number from 0 up."),
        (
            {"coats": 0, "colour": "blue"},
            "coats=0 is not a limit. Give a whole number above 0, or -1 for none.",
        ),
    ],
)
def test_the_first_field_that_breaks_its_constraint_is_named(given: dict[str, Any], says: str):
    with pytest.raises(InvalidInput) as problem:
        check_fields(Paint(**given))
    assert str(problem.value) == says


def test_only_declared_fields_have_constraints():
    assert list(constraints_of(Paint)) == ["coats", "colour", "name", "drying"]


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (LIMIT, [1, -1, 2**70], [0, -2, 1.0, True, None, "1"]),
        (DEPTH, [0, -1, 5], [-2, 1.0, False]),
        (PORT, [0, 65_535], [-1, 65_536, "80", True]),
        (TIMEOUT, [-1, -1.0, 0.001, 1e10], [0, -0.5, 1e11, float("inf"), float("nan"), True, "1"]),
        (FLAG, [True, False], [0, 1, "true", None]),
    ],
)
def test_what_fits_and_what_does_not(constraint: Any, good: list[Any], bad: list[Any]):
    assert [constraint(value, "x") for value in good] == good
    for value in bad:
        with pytest.raises(InvalidInput):
            constraint(value, "x")


def test_a_timeout_of_another_type_has_an_error_of_its_own():
    for value, says in ((True, "bool"), ("1", "str"), (None, "NoneType")):
        with pytest.raises(InvalidInput, match=f"A timeout is a number of seconds, not {says}."):
            TIMEOUT(value, "timeout")


def test_a_hostile_value_is_shown_short():
    class Hostile:
        def __repr__(self) -> str:
            raise ValueError

    with pytest.raises(InvalidInput, match=r"limit=<Hostile.*> is not possible"):
        check_count(Hostile(), "limit", 1, 5)
    with pytest.raises(InvalidInput) as problem:
        LIMIT("{name}" * 1_000, "coats")  # braces in a value are not a template
    assert len(str(problem.value)) < 200
