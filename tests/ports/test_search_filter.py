"""A search becomes a query: one thread or batch has an index, everything else is compared task by task."""

from __future__ import annotations

from meantime.kernel.search_query import TEXT, Term, parse
from meantime.ports.search_filter import narrowed
from meantime.ports.store import Query


def test_one_thread_and_one_batch_have_an_index():
    found = narrowed(Query(), parse("thread:a batch:b1 deploy"), 0.0)
    assert (found.thread, found.batch) == ("a", "b1")
    assert [term.name for term in found.terms] == [TEXT]


def test_several_or_excluded_ones_are_compared_task_by_task():
    found = narrowed(Query(), parse("batch:b1,b2 -thread:a"), 0.0)
    assert (found.thread, found.batch) == (None, None)
    assert found.terms == (Term("batch", ("b1", "b2")), Term("thread", ("a",), True))


def test_the_thread_of_a_caller_who_may_see_no_other_stays():
    found = narrowed(Query(thread="mine"), parse("thread:other"), 0.0)
    assert found.thread == "mine"
    assert found.terms == (Term("thread", ("other",)),), "which no task of this thread fits"
