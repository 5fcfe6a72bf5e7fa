"""The executable itself: help, unknown verbs, what it loads, and how it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from meantime import __version__
from meantime.app.main import VERBS
from meantime.surfaces.cli.click_commands import as_click
from meantime.surfaces.cli.verb import Verb

from .person import MEANTIME, Person

WHERE = {name: where for verbs in VERBS.values() for name, (where, _) in verbs.items()}
THERE = [name for name, where in WHERE.items() if find_spec(where.partition(":")[0])]


@pytest.fixture
def alone(tmp_path: Path) -> Person:
    """Nobody's daemon runs, and none is started."""
    one = Person(tmp_path)
    one.environ["MEANTIME_NO_START"] = "1"
    return one


def test_help_lists_every_verb(alone: Person):
    done = alone("--help")
    assert done.code == 0
    assert all(f"  {name} " in done.out for name in WHERE)
    assert alone().out == done.out


def test_the_version_is_printed(alone: Person):
    assert alone("--version").out == f"meantime {__version__}\n"


@pytest.mark.parametrize("name", THERE)
def test_a_verb_can_be_a_click_command_by_its_name(name: str):
    module, _, attribute = WHERE[name].partition(":")
    found = getattr(__import__(module, fromlist=[attribute]), attribute)
    command = as_click(found) if isinstance(found, Verb) else found
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_an_unknown_verb_suggests_the_nearest(alone: Person):
    assert alone("cancle") == (
        2, "", "meantime: There is no verb 'cancle'.\n  Did you mean `meantime cancel`?\n"
    )  # fmt: skip
    assert alone("xyzzy").err.endswith("  `meantime --help` lists the verbs.\n")


def test_bad_usage_names_the_verb_to_ask(alone: Person):
    done = alone("ps", "--nonsense")
    assert done.code == 2
    assert done.err.startswith("meantime: No such option")
    assert done.err.endswith("  See `meantime ps --help`.\n")


@pytest.mark.parametrize("how", ["environment", "option"])
def test_without_a_daemon_and_without_starting_one(alone: Person, how: str):
    arguments = ["ps"]
    if how == "option":
        del alone.environ["MEANTIME_NO_START"]
        arguments.append("--no-start")
    done = alone(*arguments)
    assert done == (5, "", "meantime: The daemon is not running.\n  Start it with `meantime up`.\n")
    assert not alone.home.exists()


def test_a_home_that_cannot_be_is_explained(alone: Person):
    done = alone("ps", environ={"MEANTIME_HOME": "relative/path"})
    assert done.code == 5
    assert "relative/path" in done.err
    assert "Traceback" not in done.err


def test_without_click_one_line_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from meantime.app.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "meantime: the command line needs click: pip install 'meantime[server]'\n"


def test_without_click_ordinary_calls_work(alone: Person):
    """They never ask it. A mistake does, and is told that it is missing."""
    code = "import sys; sys.modules['click'] = None; from meantime.app.main import main; main()"

    def called(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=alone.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert called("ps")[0] == 5
    assert called("ps", "--nonsense") == (
        1, "meantime: the command line needs click: pip install 'meantime[server]'\n"
    )  # fmt: skip


def test_python_m_meantime_is_the_same(alone: Person):
    done = subprocess.run([sys.executable, "-m", "meantime", "--version"], capture_output=True, check=False)
    assert done.stdout.decode() == alone("--version").out


@pytest.mark.processes
@pytest.mark.parametrize("call", [["--help"], ["ps"]], ids=["by click", "without click"])
def test_a_closed_stdout_and_a_full_disk(person: Person, call: list[str]):
    person("ps")  # the daemon is up
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *MEANTIME, *call],
        env=person.environ, capture_output=True, check=False,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (0, b"")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*MEANTIME, *call], env=person.environ, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("call", [["--help"], ["ps"]], ids=["by click", "without click"])
def test_a_reader_that_is_gone_ends_it_quietly(person: Person, call: list[str]):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone:
        done = subprocess.run(
            [*MEANTIME, *call], env=person.environ, stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_terminal_will_do(person: Person, encoding: str):
    """ASCII is what there is where nobody has set anything: then it is UTF-8. Otherwise `?` for the rest."""
    person.start("-n", "naïve 😀", "--", "true")
    said = person.bytes("ps", "-a", environ={"PYTHONIOENCODING": encoding}).stdout
    shown = said.decode("latin-1" if encoding == "latin-1" else "utf-8")
    assert ("naïve ?" if encoding == "latin-1" else "naïve 😀") in shown


def test_completion_is_asked_even_where_a_call_looks_ordinary(person: Person):
    done = person(
        "ps",
        environ={"_MEANTIME_COMPLETE": "bash_complete", "COMP_WORDS": "meantime p", "COMP_CWORD": "1"},
    )
    assert done.out.split() == ["plain,ps", "plain,promote", "plain,prune"]
