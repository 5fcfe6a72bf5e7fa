"""The order of a watch is checked where it is made, and its task tells how it ended."""

from __future__ import annotations

from typing import Any

import pytest

from meantime import InvalidInput, NoticeRate, Watch
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task
from meantime.kernel.watches import (
    MOST_CONTEXT,
    WatchCursor,
    cursor_of,
    ending_of,
    rate_for,
    spec_of,
    stored,
    summary_of,
)


def task_of(watch: Watch) -> Task:
    return Task(id="t_1", thread="a", work=watch.order().work, status=Status.RUNNING, run=Run())


def test_an_order_is_stored_and_read_back():
    watch = Watch(log="t_2", match="ERROR", context=3, once=True, every=5, until="ready", deadline=60)
    spec = spec_of(task_of(watch))
    assert spec == watch.spec
    assert (spec.source, spec.of, spec.context, spec.deadline) == ("log", "t_2", 3, 60)
    assert task_of(watch).title == "log t_2: ERROR"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "one thing, not 0"),
        ({"log": "t_1", "port": 80, "match": "x"}, "one thing, not 2"),
        ({"log": "t_1"}, "needs match or until"),
        ({"log": "../x", "match": "x"}, "not a valid id"),
        ({"log": 3, "match": "x"}, "must be a string"),
        ({"log": "t_1", "match": "x" * 1_001}, "at most 1000"),
        ({"log": "t_1", "match": "\ud800"}, "lone surrogate"),
        ({"log": "t_1", "match": "x", "context": MOST_CONTEXT + 1}, "context must be"),
        ({"log": "t_1", "match": "x", "context": -1}, "context must be"),
        ({"log": "t_1", "match": "x", "every": 0}, "every must be"),
        ({"log": "t_1", "match": "x", "every": float("nan")}, "every must be"),
        ({"log": "t_1", "match": "x", "deadline": -1}, "deadline must be"),
        ({"log": "t_1", "match": "x", "deadline": 1e300}, "deadline must be"),
        ({"log": "t_1", "match": "x", "stream": "stdin"}, "stream"),
        ({"log": "t_1", "match": "x", "once": 1}, "once must be True or False"),
        ({"log": "t_1", "match": "x", "value": "a"}, "value is not for a log"),
        ({"file": "relative"}, "not an absolute path"),
        ({"file": "/a\0b"}, "not a path"),
        ({"file": "/x", "cwd": "/"}, "cwd is not for a file"),
        ({"port": 0}, "not a port"),
        ({"port": "host:99999"}, "not a port"),
        ({"port": True}, "not a port"),
        ({"port": "a b:80"}, "not a port"),
        ({"port": "host\n:80"}, "not a port"),
        ({"port": "1.2.3:4:80"}, "not a port"),
        ({"port": 256 * "x" + ":80"}, "not a port"),
        ({"url": "ftp://host"}, "not an http"),
        ({"url": "http://a b"}, "not an http"),
        ({"url": "http://[bad"}, "not an http"),
        ({"url": "http://host:x/"}, "not an http"),
        ({"url": "http://host:99999/"}, "not an http"),
        ({"url": "http://host:0/"}, "not an http"),
        ({"url": "http://:80/"}, "not an http"),
        ({"url": "https:///path"}, "not an http"),
        ({"file": "/x", "new": True}, "new is for the lines of a file"),
        ({"file": "/x", "context": 1}, "context is for the lines of a file"),
        ({"command": ""}, "empty"),
        ({"command": []}, "empty"),
        ({"command": [1]}, "must hold str"),
        ({"command": 7}, "must be a list"),
        ({"pid": 0}, "not the number"),
        ({"pid": "1"}, "not the number"),
        ({"thread": ""}, "not a valid id"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_words(given: dict[str, Any], words: str):
    with pytest.raises(InvalidInput, match=words):
        Watch(**given)


@pytest.mark.parametrize("rest", ["host/", "host:x/", "[bad"])
def test_a_password_in_an_address_is_refused_and_not_repeated(rest: str):
    with pytest.raises(InvalidInput, match="sends no login") as refused:
        Watch(url=f"http://user:secret@{rest}")
    assert "secret" not in str(refused.value)
    assert Watch(url="http://host/@me?mail=a@b").spec.of == "http://host/@me?mail=a@b"
    assert Watch(file="/x", until="READY", new=True, context=1).spec.new


def test_a_port_alone_is_of_this_machine():
    assert Watch(port=80).spec.of == "127.0.0.1:80"
    assert Watch(port="[::1]:80").spec.of == "[::1]:80"
    assert Watch(port="::1:80").spec.of == "[::1]:80"
    assert Watch(port="a_b.example-1.org:80").spec.of == "a_b.example-1.org:80"
    assert Watch(port="example.org:0080").spec.of == "example.org:80"


def test_the_scheme_of_an_address_may_be_in_capitals():
    assert Watch(url="HTTP://host/").spec.of == "HTTP://host/"


def test_a_watch_may_ask_to_be_told_less_often_and_never_more_often():
    rate = NoticeRate(seconds=1.0, per_minute=30)
    assert rate_for(task_of(Watch(log="t_2", match="x", every=60)), rate).seconds == 60
    assert rate_for(task_of(Watch(log="t_2", match="x", every=0.1)), rate) == rate


def test_a_cursor_is_kept_as_it_is():
    cursor = WatchCursor(at=7, matches=2, state=["x"])
    task = task_of(Watch(log="t_2", match="x"))
    assert cursor_of(task) is None
    assert cursor_of(Task(**{**_fields(task), "run": Run(cursor=stored(cursor))})) == cursor


def _fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in task.__struct_fields__}


@pytest.mark.parametrize(
    ("cursor", "why", "words"),
    [
        (WatchCursor(), "until the deadline", "nothing matched until the deadline"),
        (WatchCursor(matches=1), "", "matched once"),
        (WatchCursor(matches=3), "until its task ended", "matched 3 times until its task ended"),
        (WatchCursor(matches=2, unsearched=1_500), "", "matched 2 times; 1,500 bytes were not searched"),
    ],
)
def test_a_watch_ends_honestly(cursor: WatchCursor, why: str, words: str):
    assert summary_of(cursor, why) == words


@pytest.mark.parametrize(
    ("given", "cursor", "words"),
    [
        ({"log": "t_2"}, WatchCursor(), "found ready"),
        ({"log": "t_2"}, WatchCursor(unsearched=7), "found ready; 7 bytes were not searched"),
        ({"log": "t_2", "match": "ERROR"}, WatchCursor(), "nothing matched until ready"),
        ({"port": 80}, WatchCursor(matches=2), "matched 2 times until ready"),
    ],
)
def test_a_watch_that_looks_for_its_end_alone_has_found_it(
    given: dict[str, Any], cursor: WatchCursor, words: str
):
    assert ending_of(Watch(until="ready", **given).spec, cursor, "until ready") == words
