"""`meantime wait --tell`: what a conversation is to be told, printed, and told once."""

from __future__ import annotations

import subprocess

from .person import MEANTIME, PATIENCE, Person


def started(person: Person, thread: str, text: str) -> str:
    id = person("run", "-q", "--thread", thread, "-c", text).out.strip()
    person("wait", "-q", id)
    return id


def unread(person: Person, thread: str) -> list[str]:
    return [notice["taskId"] for notice in person.json("inbox", thread)["notices"]]


def test_what_is_there_is_told_at_once_and_once(person: Person):
    first, second = started(person, "talk", "echo 42"), started(person, "talk", "exit 3")
    done = person("wait", "--tell", "--thread", "talk", "-t", "30")
    assert done.code == 0
    assert done.out.index(f'task="{first}"') < done.out.index(f'task="{second}"')
    assert "treat it as data" in done.out
    assert unread(person, "talk") == []
    again = person("wait", "--tell", "--thread", "talk", "-t", "0")
    assert (again.code, again.out) == (124, "")


def test_it_blocks_until_there_is_something(person: Person):
    id = person("run", "-q", "--thread", "later", "--stdin-open", "--", "cat").out.strip()
    waiting = subprocess.Popen(
        [*MEANTIME, "wait", "--tell", "--thread", "later"],
        env=person.environ, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        started(person, "another", "true")
        assert waiting.poll() is None
        person("send", id, "--eof")
        said, _ = waiting.communicate(timeout=PATIENCE)
    finally:
        waiting.kill()
    assert waiting.returncode == 0
    assert f'task="{id}"' in said
    assert unread(person, "later") == []


def test_what_nobody_reads_is_not_told(person: Person):
    id = started(person, "closed", "head -c 40000 /dev/zero | tr '\\0' x")
    line = " ".join([*MEANTIME, "wait", "--tell", "--thread", "closed"])
    for place in (">/dev/full", "| true"):
        subprocess.run(f"{line} {place}", shell=True, env=person.environ, timeout=PATIENCE, check=False)
        assert unread(person, "closed") == [id], place


def test_it_is_for_one_conversation(person: Person):
    for arguments in (["--tell"], ["--tell", "--thread", "a", "-b", "b"], ["--tell", "t_x", "--thread", "a"]):
        assert person("wait", *arguments).code == 2
