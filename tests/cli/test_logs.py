"""`meantime logs`: whole and raw into pipes, harmless on a terminal, live with -f."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import pytest
from tests.waiting import LIMIT, until

from gates import open_gate

from .person import MEANTIME, Person

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def chatty(person: Person) -> str:
    """Both streams, in an order that only `both` knows; then something evil."""
    line = (
        "for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf '\\033[31mred\\033[0m\\033[2J\\377\\n'"
    )
    id = person.start("-c", line)
    assert person("wait", "-q", id).code == 0
    return id


def test_logs_show_one_stream_or_both(person: Person, chatty: str):
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
    open_gate(gate, "go\n")
    out, err = following.communicate(timeout=LIMIT)
    assert (out, err, following.returncode) == (b"second\n", b"", 0)


def test_following_from_the_last_lines(person: Person):
    gate = person.folder / "gate2"
    os.mkfifo(gate)
    id = person.start("-c", f"echo one; echo two; read line < {gate}; echo three")
    until(lambda: person("logs", id).out == "one\ntwo\n", "both lines are recorded")
    following = person.begin("logs", "-f", "-n", "1", id)
    assert following.stdout is not None
    assert following.stdout.readline() == b"two\n"
    open_gate(gate, "go\n")
    assert following.communicate(timeout=LIMIT)[0] == b"three\n"


@pytest.mark.parametrize("follow", [[], ["-f"]])
def test_a_pipe_that_closes_ends_it_quietly(person: Person, follow: list[str]):
    id = person.start("-c", "yes | head -c 3000000" + ("; sleep 600" if follow else ""))
    if not follow:
        assert person("wait", "-q", id).code == 0
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1; echo ${PIPESTATUS[0]}', "sh", *MEANTIME, "logs", *follow, id],
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


def test_run_and_logs_say_what_they_missed(loner: Person):
    """The reader stands still while the command floods: what is gone meanwhile is said, not hidden."""
    (loner.folder / "config.toml").write_text("[http]\nport = 0\n[output]\nhead = 1000\nring = 65536\n")
    gate = loner.folder / "gate"
    os.mkfifo(gate)
    size = 12_000_000
    line = f"printf open; read line < {gate}; yes | head -c {size}"
    readers = [loner.begin("run", "-w", "--id", "fast", "-c", line)]
    until(lambda: loner("show", "fast").code == 0, "the task is there")
    readers.append(loner.begin("logs", "-f", "--stream", "stdout", "fast"))
    for reader in readers:
        assert reader.stdout is not None
        assert os.read(reader.stdout.fileno(), 4) == b"open"
        reader.send_signal(signal.SIGSTOP)
    open_gate(gate, "go\n")
    assert loner("wait", "-q", "fast").code == 0
    for reader in readers:
        reader.send_signal(signal.SIGCONT)
        out, err = reader.communicate(timeout=LIMIT)
        lost = [int(said.split()[1]) for said in err.decode().splitlines() if "not kept here" in said]
        assert reader.returncode == 0
        assert lost
        extra = out.count(b"\n\n") + out.startswith(b"\n")  # a new line where a gap cut one
        assert extra <= len(lost)
        assert len(out) + sum(lost) - size in range(len(lost) + 1)


TOOL = """
from meantime import background

@background
def shout(words: str) -> dict:
    return {"said": words.upper(), "é": 1}
"""


def test_a_function_has_a_history_in_place_of_output(loner: Person):
    (loner.folder / "loud_tools.py").write_text(TOOL)
    (loner.folder / "config.toml").write_text('tools = ["loud_tools"]\n[http]\nport = 0\n')
    loner.environ["PYTHONPATH"] = str(loner.folder)
    loner.up()
    with contextlib.closing(loner.daemon()) as asking:
        (tool,) = asking.get("/v1/info")["tools"]
        task = asking.post("/v1/tasks", {"tool": tool, "arguments": {"words": "hear me"}})
    assert loner("wait", "-q", task["id"]).code == 0
    assert "HEAR ME" in loner("logs", task["id"]).out
    assert "HEAR ME" in loner("logs", "-f", task["id"]).out
    assert loner("result", task["id"]).out == '{\n  "said": "HEAR ME",\n  "é": 1\n}\n'
    assert "HEAR ME" in loner("show", task["id"]).out


def test_logs_of_nothing(person: Person):
    id = person.start("--", "true")
    person("wait", "-q", id)
    assert person("logs", id) == (0, "", "")
    assert person("logs", "-f", id) == (0, "", "")
