"""The grammar of searches: what is written is what is meant, and a mistake is named."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.kernel.search_query import (
    LONGEST,
    MOST_TERMS,
    MOST_VALUES,
    QUALIFIERS,
    TEXT,
    TIMES,
    SearchQuery,
    Term,
    moment,
    parse,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("   ", ()),
        ("deploy", (Term(TEXT, ("deploy",)),)),
        ('"two words" three', (Term(TEXT, ("two words",)), Term(TEXT, ("three",)))),
        ("-draft", (Term(TEXT, ("draft",), True),)),
        ("status:failed,running", (Term("status", ("failed", "running")),)),
        ("STATUS:Timed-Out", (Term("status", ("timed_out",)),)),
        ("-status:lost", (Term("status", ("lost",), True),)),
        ("status:error", (Term("status", ("failed", "timed_out", "lost")),)),
        ('agent:"code review",plan', (Term("agent", ("code review", "plan")),)),
        ("thread:conv-7 batch:b1", (Term("thread", ("conv-7",)), Term("batch", ("b1",)))),
        ("kind:shell since:7d", (Term("kind", ("shell",)), Term("since", ("7d",)))),
        ('"build:prod"', (Term(TEXT, ("build:prod",)),)),
        ("https://example.org/x", (Term(TEXT, ("https://example.org/x",)),)),
        (r'"a \"b\" \\ c"', (Term(TEXT, (r'a "b" \ c',)),)),
    ],
)
def test_a_search_is_a_list_of_terms(text: str, terms: tuple[Term, ...]):
    assert parse(text) == SearchQuery(terms)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stat:failed", "stat: is not a qualifier."),
        ("build:prod", "build: is not a qualifier."),
        ("status:", "status: needs a value."),
        ("status:,", "status: needs a value."),
        ("status:happy", "There is no status 'happy'."),
        ("since:soon", "since:soon is not a time."),
        ("since:1d,2d", "since:1d,2d is not a time."),
        ("-since:1d", "-since: is not possible."),
        ('deploy "to prod', 'A quotation mark is not closed: "to prod.'),
        ("-", "- has no word behind it."),
        ('""', "An empty text finds everything."),
        ("x" * (LONGEST + 1), f"A search has at most {LONGEST} characters, not {LONGEST + 1}."),
        ("x " * (MOST_TERMS + 1), f"A search has at most {MOST_TERMS} terms."),
    ],
)
def test_a_mistake_is_named_with_what_there_is(text: str, problem: str):
    with pytest.raises(InvalidInput) as raised:
        parse(text)
    assert (raised.value.message, raised.value.code) == (problem, "bad_query")
    assert all(f"{name}:" in raised.value.hint for name in QUALIFIERS)
    assert "such as status:failed" in raised.value.hint


def test_a_misspelt_qualifier_is_recognised():
    with pytest.raises(InvalidInput) as raised:
        parse("statsu:failed")
    assert 'Did you mean status:? To search for the text, quote it: "statsu:failed".' in raised.value.hint


def test_times_are_ago_or_dates():
    assert moment("2h", 10_000.0) == 2_800.0
    assert moment("1970-01-02", 0.0) == 86_400.0
    assert moment("1970-01-01T01:00+01:00", 9.0) == 0.0
    assert moment("yesterday", 0.0) is None


VALUES = some.text(min_size=1, max_size=8)
TERMS = some.one_of(
    some.builds(Term, some.just(TEXT), some.tuples(VALUES), some.booleans()),
    some.builds(
        Term,
        some.sampled_from([name for name in QUALIFIERS if name not in (*TIMES, "status")]),
        some.lists(VALUES, min_size=1, max_size=3, unique=True).map(tuple),
        some.booleans(),
    ),
    some.builds(
        Term,
        some.just("status"),
        some.lists(some.sampled_from(Status).map(str), min_size=1, unique=True).map(tuple),
        some.booleans(),
    ),
    some.builds(Term, some.sampled_from(TIMES), some.tuples(some.sampled_from(["7d", "2026-11-30"]))),
)


@given(some.lists(TERMS, max_size=6).map(lambda terms: SearchQuery(tuple(terms))))
@example(SearchQuery((Term("agent", ("//",)),)))
def test_a_search_that_is_written_is_read_as_it_was(search: SearchQuery):
    assert parse(str(search)) == search


@given(some.text(alphabet=some.sampled_from('ab:,"\\- \tstatusince7d\x00\u202eé'), max_size=40))
def test_hostile_text_is_a_search_or_a_named_mistake(text: str):
    problem: InvalidInput | None = None
    try:
        found = parse(text)
    except InvalidInput as raised:
        problem = raised
    else:
        assert parse(str(found)) == found
    if problem is not None:
        assert problem.code == "bad_query"
        assert len(problem.message) < 200


def test_a_term_has_a_limited_number_of_values():
    ids = [f"b{number}" for number in range(MOST_VALUES)]
    assert parse(f"batch:{','.join(ids)}").terms[0].values == tuple(ids)
    with pytest.raises(InvalidInput, match=f"batch: has more than {MOST_VALUES} values"):
        parse(f"batch:{','.join([*ids, 'one-more'])}")
