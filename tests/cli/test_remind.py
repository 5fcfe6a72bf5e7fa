"""`meantime remind`: a word to a conversation later, from a shell."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest
from tests.waiting import until

from meantime.surfaces.cli.local_time import moment
from meantime.surfaces.terminal.errors import CliError

from .person import Person

pytestmark = pytest.mark.processes

NOW = datetime(2026, 5, 1, 17, 0).timestamp()


def test_a_reminder_comes_into_the_inbox_of_its_conversation(person: Person):
    said = person("remind", "--thread", "builds", "1s", "look", "at", "it").out
    assert "builds is told in" in said
    until(lambda: "look at it" in person("inbox", "builds").out, "it is told")
    assert "alarm" in person("inbox", "builds").out
    assert "builds" in person("threads").out
    assert person("remind", "--list", "--thread", "builds").out.strip() == "no reminders"


def test_reminders_are_listed_and_cancelled_by_id(loner: Person):
    first = loner.json("remind", "--thread", "a", "20m", "first")
    assert first["kind"] == "delay"
    at = (datetime.now() + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%S")
    loner("remind", "--thread", "b", "--at", at, "second")
    lines = loner("remind", "--list").out.splitlines()
    assert [line.split()[-1] for line in lines] == ["TEXT", "second", "first"]
    assert len(loner("remind", "--list", "--thread", "a").out.splitlines()) == 2
    assert loner("remind", "--cancel", first["id"]).out.startswith(f"cancelled {first['id']}")
    assert "first" not in loner("remind", "--list").out
    assert loner("remind", "--cancel", "s_0000000000").code == 3


def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so(loner: Person):
    first, second = (loner.json("remind", "--thread", "p", "20m", text)["id"] for text in ("one", "two"))
    same = next(at for at in range(len(first)) if first[at] != second[at])
    if same > 2:
        many = loner("remind", "--cancel", first[:same])
        assert (many.code, "matches 2 reminders" in many.err) == (3, True)
    assert loner("remind", "--cancel", "s_").code == 3
    assert loner("remind", "--cancel", first[: same + 1]).out == f"cancelled {first} (one)\n"
    bare = second.removeprefix("s_")[: same + 4]
    assert loner("remind", "--cancel", bare).out == f"cancelled {second} (two)\n"
    unknown = loner("remind", "--cancel", "s_0000")
    assert unknown.err == "meantime: No reminder 's_0000'.\n  `meantime remind --list` lists them.\n"
    not_a_task = loner("cancel", second)
    assert (not_a_task.code, "`meantime remind --cancel`" in not_a_task.err) == (3, True)


def test_a_text_may_begin_with_a_unit_if_it_is_quoted(person: Person):
    assert person.json("remind", "--thread", "a", "20", "minutes of the meeting")["text"][:7] == "minutes"
    assert person("remind", "--thread", "a", "0", "at once").out.endswith(": a is told now\n")


def test_what_is_wrong_is_said(person: Person):
    for arguments, problem in (
        ((), "Give a DELAY"),
        (("soon", "text"), "is not a duration"),
        (("20m",), "Nothing to be reminded of"),
        (("--at", "25:00", "text"), "is not a time"),
        (("--at", "2020-01-01T00:00", "text"), "'2020-01-01T00:00' is in the past."),
        (("--at", "2999-01-01T00:00", "text"), "'2999-01-01T00:00' is too far in the future."),
        (("20", "minutes", "text"), "'20 minutes' is not a delay: write 20m."),
        (("1.5", "Hours", "text"), "'1.5 hours' is not a delay: write 1.5h."),
        (("--at", "17:30"), "Nothing to be reminded of"),
        (("20m", "--at", "17:30", "foo"), "Give a DELAY or --at, not both."),
        (("nan", "text"), "'nan' is not a duration; try 90"),
        (("99999d", "text"), "'99999d' is too long: ten years are the most."),
        (("--cancel", ""), "--cancel names nothing."),
        (("--thread", "", "20m", "text"), "--thread names nothing."),
        (("20m", "text", "--list"), "Give a DELAY"),
    ):
        refused = person("remind", *arguments)
        assert refused.code != 0, arguments
        assert problem in refused.err, refused.err


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("17:30", 1_800),
        ("17:00:10", 10),
        ("16:59", 86_400 - 60),
        ("16:59:01", 0),
        ("17:00", 0),
        ("2026-05-01T17:01", 60),
        ("2026-05-02", 7 * 3_600),
    ],
)
def test_a_time_of_day_is_the_next_one_or_the_present_minute(said: str, seconds: float):
    assert moment(said, NOW) == NOW + seconds


def test_an_offset_is_taken_at_its_word():
    assert moment("2026-05-01T15:00:00+00:00", 1_777_640_000.0) == 1_777_647_600.0
    for wrong in ("24:61", "noon", "17", "2026-13-01", ""):
        with pytest.raises(CliError):
            moment(wrong, time.time())


def test_a_command_starts_later(person: Person):
    """Its caller's environment is not stored, so it must not need it."""
    refused = person("run", "--delay", "1s", "--", "echo", "late")
    assert (refused.code, "--no-env" in refused.err) == (2, True)
    task = person.json("run", "--no-env", "--thread", "a", "--delay", "1s", "--", "echo", "late")
    assert task["notBefore"] is not None
    assert person("wait", task["id"]).code == 0
    assert person("logs", task["id"]).out == "late\n"
    later = person.json("run", "--no-env", "--delay", "1h", "--", "true")
    assert later["state"] == "queued"
    assert "starts" in person("ps").out
    assert person("cancel", "-w", later["id"]).code == 0


def test_a_delayed_start_that_cannot_be_is_refused_in_the_words_of_its_options(person: Person):
    for arguments, problem in (
        (("--no-env", "--delay", "10m", "-e", "A=1"), "  Leave out -e: it gets the daemon's environment.\n"),
        (("--delay", "10m", "-e", "A=1"), "  Leave out -e and use --no-env: it gets the"),
        (("--no-env", "--delay", "10m", "--at", "17:30"), "meantime: Give --delay or --at, not both.\n"),
        (("--no-env", "--at", "2020-01-01T00:00"), "meantime: '2020-01-01T00:00' is in the past.\n"),
    ):
        refused = person("run", *arguments, "--", "true")
        assert refused.code == 2, arguments
        assert problem in refused.err, refused.err


def test_a_task_that_has_not_started_is_not_described_as_if_it_ran(person: Person):
    for _ in range(8):  # it is known how long such work usually takes
        person("run", "-q", "-w", "-n", "usual", "--", "true")
    later = person.start("--no-env", "--stdin-open", "-n", "usual", "--at", "2030-01-01T17:30", "--", "true")
    elsewhere = datetime(2030, 1, 1, 17, 30).astimezone(timezone(timedelta(hours=9)))
    assert f"starts at {elsewhere:%Y-%m-%d %H:%M:%S}\n" in person("ps", environ={"TZ": "JST-9"}).out
    shown = person("show", later).out
    assert "starts at 2030-01-01 17:30:00" in shown
    assert "usually" in shown
    assert "slower than usual" not in shown
    for verb in (("send", later, "hello"), ("notify", "--task", later, "hello")):
        refused = person(*verb)
        assert refused.code == 1, refused
        assert f"Task {later} has not started yet." in refused.err
    person("cancel", "-w", later)
    names = [line.split()[0] for line in person("show", later).out.splitlines()]
    assert "cancelled" in person("show", later).out
    assert not {"started", "took"} & set(names)


def test_a_delay_of_nothing_does_not_wait_for_a_slot(person: Person):
    assert person("run", "--no-env", "--delay", "0", "--", "true").out.endswith("(true), starts now\n")
