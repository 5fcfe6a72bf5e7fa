"""`meantime logs`: whole and raw into pipes, harmless on a terminal, live with -f."""

from __future__ import annotations

import os
import subprocess

import pytest

from .person import MEANTIME, Person, eventually


@pytest.fixture(scope="module")
def chatty(person: Person) -> str:
    """Both streams, in an order that only `both` knows; then something evil."""
    line = (
        "for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf '\\033[31mred\\033[0m\\033[2J\\377\\n'"
    )
    id = person.start("-c", line)
    assert person("wait", "-q", id).code == 0
    return id


def test_streams(person: Person, chatty: str):
    assert person("logs", chatty, "--stream", "stderr").out == "err 1\nerr 2\nerr 3\n"
    both = person.bytes("logs", chatty).stdout
    assert both.count(b"\n") == 7
    assert sorted(both.split(b"\n")[:-1])[1:4] == [b"err 1", b"err 2", b"err 3"]


def test_a_pipe_gets_every_byte(person: Person, chatty: str):
    out = person.bytes("logs", chatty, "--stream", "stdout").stdout
    assert out == b"out 1\nout 2\nout 3\n\x1b[31mred\x1b[0m\x1b[2J\xff\n"


def test_a_terminal_gets_text_and_colours(person: Person, chatty: str):
    terminal = person.terminal("logs", chatty, "--stream", "stdout")
    assert terminal.end() == 0
    assert terminal.screen == "out 1\nout 2\nout 3\n\x1b[31mred\x1b[0m\ufffd\n\x1b[0m"
    raw = person.terminal("logs", chatty, "--stream", "stdout", "--raw")
    assert raw.end() == 0
    assert "\x1b[2J" in raw.screen


def test_tail_and_offset(person: Person, chatty: str):
    assert person("logs", chatty, "--stream", "stderr", "-n", "2").out == "err 2\nerr 3\n"
    assert person("logs", chatty, "--stream", "stderr", "-n", "0").out == ""
    assert person("logs", chatty, "--stream", "stderr", "--offset", "12").out == "err 3\n"
    found = person.json("logs", chatty, "--stream", "stderr")
    assert found == {
        "data": "err 1\nerr 2\nerr 3\n",
        "offset": 0,
        "next": 18,
        "total": 18,
        "lostBytes": 0,
        "ended": True,
    }


def test_following_shows_it_as_it_comes_and_ends_with_the_task(person: Person):
    gate = person.folder / "gate"
    os.mkfifo(gate)
    id = person.start("-c", f"echo first; read line < {gate}; echo second")
    following = person.begin("logs", "-f", id)
    assert following.stdout is not None
    assert following.stdout.readline() == b"first\n"
    gate.write_text("go\n")
    out, err = following.communicate(timeout=30)
    assert (out, err, following.returncode) == (b"second\n", b"", 0)


def test_following_from_the_last_lines(person: Person):
    gate = person.folder / "gate2"
    os.mkfifo(gate)
    id = person.start("-c", f"echo one; echo two; read line < {gate}; echo three")
    eventually(lambda: person("logs", id).out == "one\ntwo\n")
    following = person.begin("logs", "-f", "-n", "1", id)
    assert following.stdout is not None
    assert following.stdout.readline() == b"two\n"
    gate.write_text("go\n")
    assert following.communicate(timeout=30)[0] == b"three\n"


def test_a_pipe_that_closes_ends_it_quietly(person: Person):
    id = person.start("-c", "yes | head -c 3000000")
    assert person("wait", "-q", id).code == 0
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1; echo ${PIPESTATUS[0]}', "sh", *MEANTIME, "logs", id],
        env=person.environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[0] == "y"
    assert done.stdout.splitlines()[1] in ("141", "0")
    assert done.stderr == ""


def test_more_than_is_kept_is_said_and_the_rest_is_whole(person: Person):
    """The first megabyte and the last four are kept."""
    id = person.start("-c", "yes | head -c 9000000; echo; echo the end")
    assert person("wait", "-q", id).code == 0
    done = person.bytes("logs", id)
    assert b"bytes were not kept here." in done.stderr
    assert done.stdout.startswith(b"y\ny\n")
    assert done.stdout.endswith(b"the end\n")
    assert 5_000_000 < len(done.stdout) < 5_300_000


def test_logs_of_nothing(person: Person):
    id = person.start("--", "true")
    person("wait", "-q", id)
    assert person("logs", id) == (0, "", "")
    assert person("logs", "-f", id) == (0, "", "")
