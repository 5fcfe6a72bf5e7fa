"""Expressions are RE2's: no expression takes long, and one that RE2 does not know is refused in words."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime import InvalidInput
from meantime.runners.watch import expressions
from meantime.runners.watch.expressions import ExpressionSet, expression

LINES = st.lists(st.text(st.sampled_from("ab1 \té"), max_size=6), max_size=8)


@given(LINES, st.sampled_from(["a", "^a", "a$", "[^b]+1", "a|1", "^$", r"a\b", r"\s", "(?s)a.1", "é+", "a*"]))
def test_a_block_is_searched_line_by_line(lines: list[str], text: str):
    block = "".join(f"{line}\n" for line in lines).encode()
    found = [block[one.begin : one.end].decode() for one in expression(text).lines(block)]
    expected = [line for line in lines if line and re.search(text, line, re.ASCII)]
    assert found == expected
    assert bool(ExpressionSet([text, "nothing"]).hits(block) & {0}) >= bool(found)


@pytest.mark.parametrize("text", ["(", "x)(y", "(?=a)", "(?<=a)b", r"(a)\1", "*", r"\Ax", r"x\z", "a{1001}"])
def test_what_re2_does_not_know_is_refused(text: str):
    with pytest.raises(InvalidInput, match="is not an expression of RE2") as refused:
        expression(text, "until")
    assert refused.value.code == "bad_expression"
    assert refused.value.args[0].startswith("until=")


@pytest.mark.parametrize("text", [r"\\A", r"\Q\A\E", "(?i)error", r"\d{3}", "[[:alpha:]]+", r"\pL"])
def test_what_re2_knows_is_taken(text: str):
    expression(text)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidInput, match="need an extra") as refused:
        expression("never compiled before")
    assert refused.value.hint == "pip install 'meantime[watch]'"
    assert refused.value.code == "extra_missing"


@pytest.mark.parametrize("memory", [1 << 10, 1 << 15, 1 << 16, 3 << 15, 1 << 17])
def test_a_set_that_runs_out_of_memory_still_finds_everything(monkeypatch: pytest.MonkeyPatch, memory: int):
    monkeypatch.setattr(expressions, "SET_MEMORY", memory)
    texts = [f"x{n}.{{50}}y" for n in range(20)]
    block = b"nothing\n" + b"x7" + b"-" * 50 + b"y\n"
    assert ExpressionSet(texts).hits(block) == {7}


def test_a_hostile_expression_takes_no_time():
    block = b"a" * 50_000 + b"\n"
    assert expression("(a+)+$|(a|aa)+b|(.*)*c").lines(block)
    assert not expression("(a*)*b|(a|a?)+c").lines(block)
