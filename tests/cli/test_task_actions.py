"""clear, unpark, prune ID, and what ps and show say of usual durations: with the real executable."""

from __future__ import annotations

import re
import shlex

import pytest
from tests.waiting import until

from .person import MEANTIME, Person


@pytest.mark.processes
def test_named_tasks_are_cleared_and_deleted(person: Person):
    id = person.start("--thread", "tidy", "-n", "tidy me", "--", "true")
    person("wait", "-q", id)
    assert person("clear", id).out == "cleared 1 of 1 tasks\n"
    assert person("clear", id).out == "cleared 0 of 1 tasks\n"
    refused = person("prune", id)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert person("prune", "--yes", id).out == "deleted 1 tasks\n"
    assert person("show", id).code == 3


def test_what_runs_is_not_deleted(person: Person):
    id = person.start("--", "sleep", "600")
    refused = person("prune", "--yes", id)
    assert (refused.code, "has not ended" in refused.err) == (4, True)
    person("cancel", "-w", id)


def test_nothing_parked_is_put_back(person: Person):
    assert person("unpark", "tidy").out == "put back 0 notices\n"
    assert person("unpark", "tidy", "t_none.1").out == "put back 0 notices\n"


def test_a_call_that_is_not_there_cannot_be_promoted(person: Person):
    assert person("promote", "nobody").code == 3


@pytest.mark.processes
def test_the_usual_duration_is_shown_once_it_is_known(person: Person):
    for _ in range(3):
        person("wait", "-q", person.start("-n", "as usual", "--", "sleep", "0.2"))
    id = person.start("-n", "as usual", "--", "sleep", "600")
    (row,) = [line for line in person("ps").out.splitlines() if "as usual" in line]
    assert re.search(r"usually \d", row)
    assert re.search(r"usually \d", person("show", id).out)
    person("cancel", "-w", id)


def test_show_says_whether_the_conversation_was_told(person: Person):
    id = person.start("--thread", "told", "--", "true")
    person("wait", "-q", id)
    (line,) = [line for line in person("show", id).out.splitlines() if line.startswith("told")]
    assert line.split() == ["told", "unread"]


@pytest.mark.processes
def test_a_command_tells_its_conversation_before_it_ends(person: Person):
    script = shlex.join([*MEANTIME, "notify", "half of it"]) + " && echo told && sleep 600"
    id = person.start("--thread", "builds", "-n", "build", "--", "sh", "-c", script)
    said = until(lambda: person("logs", id).out, "the command has said something")
    assert said == "told\n", "nothing of notify is in the output, which a model reads"
    inbox = person("inbox", "builds").out
    assert "half of it" in inbox
    assert person("notify", "--task", id, "and", "more").out.startswith(("sent", "waiting"))
    assert person("notify", "-q", "--task", id, "and", "more").out == ""
    person("cancel", "-w", id)
    late = person("notify", "--task", id, "late")
    assert (late.code, "has ended" in late.err) == (person("send", id, "late").code, True)


def test_a_notice_needs_a_task(person: Person):
    refused = person("notify", "to whom")
    assert (refused.code, "--task ID" in refused.err) == (2, True)
    assert person("notify", "--task", "nobody", "hello").code == 3
