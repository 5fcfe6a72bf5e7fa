"""Ctrl+C, pressed again and again: the last word is said, and the exit code is that of one."""

from __future__ import annotations

import signal

import pytest

from meantime.surfaces.cli import first_interrupt
from meantime.surfaces.cli.verbs import run

from .person import Person

pytestmark = pytest.mark.processes

FOREVER = "echo begun; exec sleep 600"


@pytest.fixture(scope="module")
def waits(person: Person) -> str:
    """A task that runs for as long as the tests do."""
    person.start("--id", "waits", "-c", FOREVER)
    return "waits"


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (["wait", "ended", "waits"], "Not waiting any more; the tasks run on."),
        (["run", "-w", "-n", "mine", "-c", FOREVER], "runs on."),
        (["logs", "-f", "waits"], ""),
    ],
    ids=["wait", "run", "logs"],
)
def test_an_impatient_person_is_told_all_the_same(person: Person, waits: str, verb: list[str], said: str):
    if "ended" in verb:
        person.start("--id", "ended", "--", "true")
        person("wait", "ended")
    process = person.begin(*verb)
    assert process.stdout is not None
    assert process.stdout.readline()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
    error = process.communicate()[1].decode()
    assert process.returncode == 130
    assert said in error
    assert "Traceback" not in error


def test_a_start_that_is_interrupted_names_what_may_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The daemon has the order, and has not answered yet."""

    def unanswered(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(first_interrupt, "interrupt_once", lambda: None)
    monkeypatch.setattr(run, "started", unanswered)
    assert run._waited(None, {"id": "t_0123456789"}, raw=False, as_json=False) == 130  # pyright: ignore[reportArgumentType]
    assert "meantime: 01234567 may run.\n" in capsys.readouterr().err
