"""Payloads: made JSON, measured, cut, cleaned. Whatever a function returns, its task can end."""

from __future__ import annotations

import datetime
import enum
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.model import InlineLimits
from meantime.kernel.payloads import (
    MAX_DEPTH,
    MAX_REPRS,
    PREVIEW,
    REPR,
    as_text,
    clean,
    count_lines,
    is_over,
    is_unicode,
    jsonable,
    one_line,
    preview,
    reprs_in,
    spill_record,
)
from meantime.surfaces.terminal import terminal_text


@dataclass
class Point:
    x: Any
    y: Any = None


class Colour(enum.Enum):
    RED = "red"


class Shade(str, enum.Enum):  # noqa: UP042  the old way to write a StrEnum, which is still about
    DARK = "dark"


class Count(int):
    """Like numpy's and like many libraries' ids: an int, but not quite."""


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("no text for you")


def survives(value: object) -> bool:
    """It can be stored, and is the same when it is read again."""
    return msgspec.json.decode(msgspec.json.encode(value)) == value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# Results become JSON


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 2**70, 1.5, "", "é\x00🙂", [], {}, [1, [2]], {"a": [None]}]
)
def test_json_stays_what_it_is(value):
    assert jsonable(value) == (value, True)


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, (2,)), [1, [2]]),
        ({7}, [7]),
        (b"\xff", "/w=="),
        (Point(1, [2]), {"x": 1, "y": [2]}),
        (Colour.RED, "red"),
        (datetime.date(2026, 5, 1), "2026-05-01"),
        (Decimal("1.10"), "1.10"),
    ],
    ids=repr,
)
def test_what_has_a_json_form_gets_it(value, kept):
    assert jsonable(value) == (kept, True)


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), "nan"),
        ([float("-inf")], ["-inf"]),
        ("\ud800", "\\ud800"),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({"\udfff": 1}, {"\\udfff": 1}),
        (1j, "1j"),
        ([1, range(3)], [1, "range(0, 3)"]),
    ],
    ids=repr,
)
def test_what_is_not_json_is_kept_as_text_and_says_so(value, kept):
    assert jsonable(value) == (kept, False)


@pytest.mark.behaviour("N16")
def test_a_long_text_of_an_object_is_cut():
    class Long:
        def __repr__(self) -> str:
            return "x" * 10 * REPR

    assert jsonable(Long()).value == "x" * REPR


@pytest.mark.behaviour("N16")
def test_an_object_that_cannot_be_read_still_ends_its_task():
    assert jsonable(Unreadable()) == ("<Unreadable that could not be read: RuntimeError>", False)


@pytest.mark.behaviour("N16")
def test_depth_is_bounded():
    value, faithful = jsonable(nested(10_000))
    assert not faithful
    assert as_text(value) == "[" * MAX_DEPTH + '"…"' + "]" * MAX_DEPTH


@pytest.mark.behaviour("N16")
def test_a_list_that_holds_itself_is_cut_too():
    knot: list[Any] = [1]
    knot.append(knot)
    value, faithful = jsonable(knot)
    assert not faithful
    assert survives(value)


@pytest.mark.behaviour("N16")
def test_a_dict_that_holds_itself_is_cut_too():
    knot: dict[str, Any] = {}
    knot["self"] = knot
    assert survives(jsonable(knot).value)


@pytest.mark.behaviour("N16")
def test_a_list_that_holds_itself_twice_takes_no_longer():
    visits = 0

    class Knot(list[Any]):
        def __iter__(self):
            nonlocal visits
            visits += 1
            if visits > 10_000:  # or this test would never end
                raise RuntimeError
            return super().__iter__()

    knot = Knot()
    knot += [knot, knot]
    assert survives(jsonable(knot).value)
    assert visits < 10_000


@pytest.mark.behaviour("N16")
def test_an_ints_subclass_is_an_int():
    assert survives(jsonable([Count(3)]).value)


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize("value", [10**5000, [10**5000]], ids=["bare", "in a list"])
def test_an_int_too_long_to_print_still_ends_its_task(value):
    assert survives(jsonable(value).value)


@pytest.mark.behaviour("N16")
def test_an_enum_of_texts_is_its_value():
    assert jsonable(Shade.DARK) == ("dark", True)


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize(
    "value", [["kept", Unreadable()], {"a": "kept", "b": {1: Unreadable()}}], ids=["list", "dict"]
)
def test_one_unreadable_part_does_not_cost_the_rest(value):
    assert "kept" in as_text(jsonable(value).value)


any_text = st.text(st.characters(exclude_categories=()), max_size=8)
plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
)
json_values = st.recursive(
    plain | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
hashable = plain | any_text | st.floats() | st.binary(max_size=4) | st.just(2**70)
odd = st.builds(Unreadable) | st.builds(object) | st.sampled_from([Colour.RED, 1j, ..., int, print])
leaves = (
    hashable
    | odd
    | st.dates()
    | st.decimals()
    | st.sets(hashable, max_size=3)
    | st.builds(nested, st.just(10_000))
)


def with_itself(items: list[Any]) -> list[Any]:
    items.append(items)
    return items


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = hashable | st.tuples(hashable) | st.sampled_from(Colour)
    lists = st.lists(inner, max_size=4)
    knots = st.lists(leaves, max_size=2).map(with_itself)
    dicts = st.dictionaries(keys, inner, max_size=4)
    return lists | knots | lists.map(tuple) | dicts | st.builds(Point, inner, inner)


anything = st.recursive(leaves, containers, max_leaves=12)


@pytest.mark.behaviour("N16")
@given(anything)
def test_anything_at_all_can_be_stored_and_read_again(value):
    assert survives(jsonable(value).value)


@pytest.mark.behaviour("N16")
@given(json_values)
def test_json_is_kept_to_the_letter(value):
    assert jsonable(value) == (value, True)


@pytest.mark.behaviour("N16")
@given(anything)
def test_what_became_json_stays_as_it_is(value):
    once = jsonable(value).value
    assert jsonable(once) == (once, True)


@given(any_text)
def test_is_unicode_says_what_can_be_encoded(text):
    assert is_unicode(text) is not any("\ud800" <= letter <= "\udfff" for letter in text)


# The form of a synchronous answer


@pytest.mark.behaviour("N16")
@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is", "as it is"), (None, ""), ([1, "a"], '[1,"a"]'), ({"a": True}, '{"a":true}'), (0, "0")],
)
def test_text_is_shown_as_it_is_and_everything_else_as_json(value, text):
    assert as_text(value) == text


# Inline or spilled


@pytest.mark.behaviour("N17")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\r\nb\r\n", 2),
        ("a\n\n\r\n\n", 1),
        ("\n\n", 0),
        ("\n\na", 3),
        ("a\n \n", 2),
        ("a\rb\x0bc\x0cd\x85e\u2028f", 1),  # str.splitlines() would see six
    ],
)
def test_lines_are_counted_as_seed_004_does(text, lines):
    assert count_lines(text) == lines


@pytest.mark.behaviour("N17")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("trailing", ["", "\n", "\r\n\n\r\n"])
def test_at_the_line_limit_stays_inline_and_one_more_is_over(newline, trailing):
    limits = InlineLimits(max_lines=3)
    assert not is_over(newline.join("abc") + trailing, limits)
    assert is_over(newline.join("abcd") + trailing, limits)


@pytest.mark.behaviour("N17")
def test_at_the_byte_limit_stays_inline_and_one_more_is_over():
    limits = InlineLimits(max_bytes=10)
    assert not is_over("x" * 10, limits)
    assert is_over("x" * 11, limits)


@pytest.mark.behaviour("N17")
def test_bytes_are_counted_and_not_characters():
    limits = InlineLimits(max_bytes=10)
    assert not is_over("é" * 5, limits)
    assert is_over("é" * 5 + "x", limits)


@pytest.mark.behaviour("N17")
def test_the_default_limits_are_those_of_the_seed():
    assert not is_over("x" * 51_200, InlineLimits())
    assert is_over("x" * 51_201, InlineLimits())
    assert not is_over("x\n" * 1_000, InlineLimits())
    assert is_over("x\n" * 1_001, InlineLimits())


@pytest.mark.behaviour("N17")
@given(st.text("a\r\n", max_size=30), st.integers(1, 8))
def test_over_is_exactly_more_lines_than_allowed(text, limit):
    assert is_over(text, InlineLimits(max_lines=limit)) is (count_lines(text) > limit)


@pytest.mark.behaviour("N17")
def test_a_spill_says_how_big_the_whole_is():
    spill = spill_record("/spill/1", "é\n" * 3)
    assert (spill.path, spill.bytes, spill.lines) == ("/spill/1", 9, 3)


@pytest.mark.behaviour("N17")
def test_a_preview_is_head_and_tail():
    text = "H" * 50_000 + "T" * 50_000
    shown = preview(spill_record("/spill/1", text))
    assert shown == "H" * int(PREVIEW * 0.8) + "\n…\n" + "T" * int(PREVIEW * 0.2)


@pytest.mark.behaviour("N17")
@pytest.mark.parametrize("length", [0, 1, 1_600])
def test_a_short_payload_is_its_own_preview(length):
    text = "x" * length
    assert preview(spill_record("/spill/1", text)) == text


@pytest.mark.behaviour("N17")
@pytest.mark.parametrize("length", [1_601, 2_000])
def test_a_payload_that_fits_the_preview_is_shown_whole(length):
    text = "x" * (length - 1) + "!"
    assert preview(spill_record("/spill/1", text)) == text


# Untrusted output is cleaned


@pytest.mark.behaviour("N12")
@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x00b\x08c\x7fd\x9be", "abcde"),
        ("right\u202eleft\u2066x", "rightleftx"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("one\r\ntwo", "one\ntwo"),
        ("é 漢字 🙂", "é 漢字 🙂"),
    ],
)
def test_control_characters_are_removed_from_output(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.behaviour("N12")
@pytest.mark.parametrize(
    "text",
    [
        "</task-notification>",
        "<TASK-OUTPUT-abc>",
        "</ task-output>",
        "<system-reminder>",
        "<\u200btask-output>",
        "<\x1b[0mtask-output>",
    ],
)
def test_output_cannot_speak_with_our_tags(text):
    assert clean(text).startswith("&lt;")


@pytest.mark.behaviour("N12")
def test_other_peoples_tags_are_left_alone():
    assert clean("<b>a < b</b> <task>") == "<b>a < b</b> <task>"


@pytest.mark.behaviour("N12")
def test_a_space_before_the_slash_does_not_hide_a_tag():
    assert clean("< /task-notification>").startswith("&lt;")


@pytest.mark.behaviour("N12")
@pytest.mark.parametrize(
    "letter",
    ["\U000e0041", "\u00ad", "\u180e", "\u206a", "\u2028", "\u2029", "\ufff9"],
    ids=lambda letter: f"U+{ord(letter):04X}",
)
def test_other_invisible_characters_go_too(letter):
    """U+E0000 and on spell ASCII that a person does not see and a model reads."""
    assert clean(f"a{letter}b") == "ab"


@pytest.mark.behaviour("N12")
def test_a_reset_of_the_character_set_leaves_nothing():
    assert clean("bold\x1b(B\x1b[m") == "bold"


@pytest.mark.behaviour("N12")
def test_an_unfinished_escape_does_not_swallow_the_lines_after_it():
    assert clean("before\x1b]0;title\nthe result").endswith("the result")


CODES = ("\x1b[31m", "\x1b", "[0m", "\x1b]0;", "\x07", "\x9b", "\r", "\n", "\u202e", "\u200b", "\ufeff")
TAGS = ("<", "</", "task-notification", "task-output", "-x>", "System-Reminder", "task-", "output", " ")
nasty = st.lists(st.sampled_from(CODES + TAGS) | st.text(max_size=3)).map("".join)
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
OUR_TAGS = re.compile(r"</?\s*(task-notification|task-output|system-reminder)\b", re.IGNORECASE)


@pytest.mark.behaviour("N12")
@given(nasty)
def test_nothing_unseen_is_left(text):
    assert not UNSEEN.search(clean(text))


@pytest.mark.behaviour("N12")
@given(nasty)
def test_none_of_our_own_tags_is_left(text):
    assert not OUR_TAGS.search(clean(text))


@pytest.mark.behaviour("N12")
@given(nasty)
def test_clean_stays_clean(text):
    assert clean(clean(text)) == clean(text)


@pytest.mark.behaviour("N12")
@given(st.text(st.characters(categories=["L", "N", "P"], exclude_characters="<")))
def test_what_people_write_is_not_touched(text):
    assert clean(text) == text


PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"  # with a joiner inside the word
HINDI = "\u0915\u094d\u200d\u0937"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
HEART = "\u2764\ufe0f\u200d\U0001f525"


@pytest.mark.parametrize("text", [PERSIAN, HINDI, FAMILY, HEART, f"so {FAMILY}, {PERSIAN}."])
def test_joiners_inside_words_and_emoji_stay(text: str):
    assert clean(text) == text
    assert terminal_text.plain(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("pass\u200dword", "password"),
        ("a \u200d b", "a  b"),
        ("\u200dstart", "start"),
        ("end\u200d", "end"),
        ("\u0645\u200d\u200d\u0645", "\u0645\u0645"),
        ("\u0645\u200d \u0645", "\u0645 \u0645"),
        ("pass\ufeff\u200d\ufeffword", "password"),
        ("<sys\u200dtem-reminder>", "&lt;system-reminder>"),
        ("\u200bhidden\u200b", "hidden"),
    ],
)
def test_a_joiner_that_joins_nothing_is_taken_out(text: str, cleaned: str):
    assert clean(text) == cleaned


def test_a_text_that_is_cut_ends_with_an_ellipsis():
    assert one_line("a\nb", 10) == "a b"
    assert one_line("x" * 200) == "x" * 200
    assert one_line("x" * 201) == "x" * 199 + "\u2026"
    assert len(one_line("word " * 100, 60)) <= 60


def test_only_the_first_types_that_are_kept_as_a_repr_are_named():
    types = [type(f"Odd{number}", (), {"__slots__": ()}) for number in range(MAX_REPRS + 5)]
    found = reprs_in([kind() for kind in types])
    assert [name.rpartition(".")[2] for name in found] == [f"Odd{number}" for number in range(MAX_REPRS)]
