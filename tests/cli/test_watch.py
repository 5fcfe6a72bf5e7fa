"""`meantime watch`: with the real executable and its daemon."""

from __future__ import annotations

import pytest
from tests.waiting import until

from .person import Person

pytestmark = pytest.mark.processes


def test_a_line_of_a_running_command_is_told_before_it_ends(person: Person):
    id = person.start("--thread", "builds", "--", "sh", "-c", "echo ok; echo ERROR 7; exec sleep 600")
    done = person("watch", id, "--match", "ERROR", "-C", "1", "--thread", "builds")
    assert (done.code, done.out.startswith("watching t_")) == (0, True)
    watch = done.out.split()[1]
    until(lambda: "> ERROR 7" in person("inbox", "-v", "builds").out, "the line is told")
    _, before, match = person("inbox", "-v", "builds").out.splitlines()[-3:]
    assert (before, match) == ("      ok", "    > ERROR 7"), "lines of a match stand below each other"
    assert person("inbox", "builds").out.rstrip().endswith("  ERROR 7")  # and not the line before it
    assert watch[2:10] in person("ps").out
    person("cancel", "-w", id)
    until(lambda: "matched once until its task ended" in person("result", watch).out, "the watch ends")


def test_a_watch_says_what_it_looks_at_and_how_often_it_matched(person: Person):
    file = person.folder / "app.log"
    file.write_text("ok\nERROR 7\n")
    given = ("--file", "app.log", "-m", "ERROR", "--every", "2s", "--deadline", "10m", "-n", "errors of app")
    watch = person("watch", "-q", *given).out.strip()
    until(lambda: "matched once" in person("ps").out, "the line is found")
    asked = f"file {file} · match ERROR · every 2s · deadline 10m 0s"
    shown = person("show", watch).out
    assert f"watches  {asked}\n" in shown
    assert "now      matched once\n" in shown
    person("cancel", "-w", watch)
    logs = person("logs", watch).out
    assert f"[user] {asked}\n" in logs
    assert "[system] matches: 1\n" in logs
    assert "{" not in logs


def test_a_slash_says_that_a_folder_is_waited_for(person: Person):
    """Without it a file is waited for, and a folder in its place has no lines."""
    watch = person("watch", "-q", "--file", "new/", "-m", "log$", "--once", "--every", "100ms").out.strip()
    (person.folder / "made").mkdir()
    (person.folder / "made" / "app.log").touch()
    (person.folder / "made").rename(person.folder / "new")
    assert person("wait", "-q", watch).code == 0
    assert person("result", watch).out == f"matched once\n{person.folder}/new/ appeared\n+ app.log\n"


def test_a_line_of_output_is_waited_for_by_until_alone(person: Person):
    id = person.start("-n", "server", "--", "sh", "-c", "echo starting; echo ready on 8080; exec sleep 600")
    said = person("watch", id, "--until", "ready").out
    assert said.endswith(" (log server until ready)\n")
    watch = said.split()[1]
    assert person("wait", "-q", watch).code == 0
    assert person("result", watch).out == "found ready\nready on 8080\n"


def test_a_command_is_not_polled_in_a_folder_that_is_gone(person: Person):
    gone = person.folder / "gone"
    gone.mkdir()
    refused = person("watch", "--poll", "true", cwd=gone, preexec_fn=gone.rmdir)
    assert (refused.code, "The current folder is gone. Go elsewhere." in " ".join(refused.err.split())) == (
        2,
        True,
    )


def test_a_port_a_file_and_a_command_are_watched(person: Person):
    file = person.folder / "there"
    file.touch()
    for given in (("--file", "there"), ("--port", "1"), ("--poll", "test -e there"), ("--pid", "1")):
        watch = person("watch", "-q", "--thread", "builds", "--deadline", "0", *given).out.strip()
        assert person("wait", "-q", watch).code == 0
        assert person("result", watch).out.startswith("nothing matched until the deadline"), given
    watch = person("watch", "-q", "--poll", "test -e there", "-m", "^exit 0", "--once").out.strip()
    assert person("wait", "-q", watch).code == 0
    assert person("result", watch).out == "matched once\nexit 0\n"


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ((), 2, "Name one thing"),
        (("t_1",), 2, "--match"),
        (("t_1", "--port", "80"), 2, "Name one thing"),
        (("nobody", "--match", "x"), 3, "nobody"),
        (("--port", "80", "--match", "(?=x)"), 2, "RE2"),
        (("--port", "x"), 2, "not a port"),
        (("--file", ""), 2, "--file is empty"),
        (("--file", 300 * "x"), 2, "too long"),
        (("--poll", " "), 2, "--poll is empty"),
    ],
)
def test_what_cannot_be_watched_is_said_in_words(
    person: Person, given: tuple[str, ...], code: int, words: str
):
    refused = person("watch", *given)
    assert (refused.code, words in refused.err) == (code, True), refused
