"""One round with one subject: start two tasks, kill everything in mid-work, start again, look."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..scripted import Asked, Model, script
from .judge import TASKS, Evidence, heard_in, told_in
from .subject import Subject

PATIENCE = 60.0  # seconds for an answer of the program
WATCH = 30.0  # seconds in which a conversation that nobody talks to may be told
UNTOLD = 15.0  # the same for a subject that tells nobody: its work may go on
MAIN = "main-conversation"  # it is in every prompt of the conversation that is to be told


class Stuck(Exception):
    """The program did not do what the round needs; with what it said last."""


class Program:
    """The subject's side, in a session of its own: what is killed is all of it."""

    def __init__(self, subject: Subject, folder: Path, url: str) -> None:
        environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(folder / "user"), "CRASH_LEDGER": str(folder / "ledger"),
            "CRASH_STATE": str(folder / "state"), "CRASH_MODEL": url, **subject.environ(folder),
        }  # fmt: skip
        self._folder = folder
        self._errors = folder / "program.err"
        self._subject = subject
        with self._errors.open("a") as errors:
            self._process = subprocess.Popen(
                subject.command, env=environ, cwd=folder / "state", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        self._rest = b""

    def until_ready(self) -> None:
        self._read("ready")

    def say(self, text: str) -> None:
        self._ask({"say": text}, "said")

    def say_only(self, text: str) -> None:
        """Does not wait for the answer."""
        self._put({"say": text})

    def state(self) -> dict[str, str]:
        return self._ask({"state": True}, "state")

    def kill(self) -> None:
        """kill -9, for the whole session: the program, and what it started in it."""
        for pid in [self._process.pid, *session_of(self._process.pid), *self._subject.apart(self._folder)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close() if stream else None

    def _ask(self, asked: dict[str, Any], wanted: str) -> Any:
        self._put(asked)
        return self._read(wanted)

    def _put(self, asked: dict[str, Any]) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Stuck(f"{self._subject.name} has ended: {self._said()}") from None

    def _read(self, wanted: str) -> Any:
        assert self._process.stdout
        until = time.monotonic() + PATIENCE
        while True:
            while b"\n" in self._rest:
                line, _, self._rest = self._rest.partition(b"\n")
                with contextlib.suppress(ValueError):  # a library that prints
                    answer = json.loads(line)
                    if isinstance(answer, dict) and wanted in answer:
                        return answer[wanted]
                    if isinstance(answer, dict) and "error" in answer:
                        raise Stuck(f"{self._subject.name}: {answer['error']}")
            left = until - time.monotonic()
            ready = select.select([self._process.stdout], [], [], max(0.0, left))[0]
            piece = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not piece:
                raise Stuck(f"{self._subject.name} did not say {wanted!r}: {self._said()}")
            self._rest += piece

    def _said(self) -> str:
        return self._errors.read_text(errors="replace")[-2_000:]


def play(subject: Subject) -> tuple[Evidence, list[str]]:
    """The evidence of one round, and what the model was told, word for word."""
    model = Model()
    with tempfile.TemporaryDirectory(prefix="crash-", dir="/var/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for each in ("ledger", "state", "user"):
            (folder / each).mkdir()
        try:
            return _play(subject, folder, model)
        finally:
            model.close()
            subject.clean(folder)


def _play(subject: Subject, folder: Path, model: Model) -> tuple[Evidence, list[str]]:
    model.scripts |= {f"child-{task}": subject.child(task) for task in TASKS}
    with _running(subject, folder, model) as program:
        begin = program.say if subject.answers_first else program.say_only
        begin(_prompt(*subject.starts(), {"text": "Both run."}))
        _until(lambda: all(_count(folder, "begun")[task] for task in TASKS), f"{subject.name} begins no work")
    before = len(model.asked)
    (folder / "ledger" / "gate").touch()
    with _running(subject, folder, model) as program:
        _watch(lambda: all(_told(subject, model, before).values()), WATCH if subject.tells else UNTOLD)
        woken = _told(subject, model, before)
        for _ in range(2):  # the second shows what is told again with every prompt
            program.say(_prompt({"text": "I see."}))
    with _running(subject, folder, model) as program:  # and killed once more: is it told again?
        program.say(_prompt({"text": "I see."}))
        _watch(lambda: False, 2.0)
        state = program.state()
    texts = _texts(model, before)
    told = told_in(texts, subject.telling)
    words = Counter(match[0] for text in texts[-1] for match in subject.tellings(text))
    heard = heard_in(texts, subject.telling)
    return Evidence(_count(folder, "begun"), _count(folder, "done"), told, woken, state, heard, words), list(
        words
    )


@contextlib.contextmanager
def _running(subject: Subject, folder: Path, model: Model) -> Iterator[Program]:
    program = Program(subject, folder, model.url)
    try:
        program.until_ready()
        yield program
    finally:
        program.kill()


def _prompt(*steps: dict[str, Any]) -> str:
    return f"{MAIN} {script(*steps)}"


def _count(folder: Path, kind: str) -> Counter[str]:
    return Counter(path.name.partition(".")[0] for path in (folder / "ledger").glob(f"*.{kind}"))


def _told(subject: Subject, model: Model, before: int) -> dict[str, int]:
    return told_in(_texts(model, before), subject.telling)


def _texts(model: Model, before: int) -> list[list[str]]:
    """The messages that the model was sent after the crash, in the conversation itself: neither its own words
    nor titles, nor the questions of subagents."""
    mine = [asked for asked in model.asked[before:] if any(MAIN in part.text for part in asked.said)]
    return [_sent(asked) for asked in mine]


def _sent(asked: Asked) -> list[str]:
    return [part.text for part in asked.said if part.role != "assistant"]


def _watch(is_done: Any, seconds: float = WATCH) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not is_done():
        time.sleep(0.1)


def _until(is_done: Any, problem: str) -> None:
    _watch(is_done, PATIENCE)
    if not is_done():
        raise Stuck(problem)


def session_of(id: int) -> list[int]:
    """The processes of the session that this process began."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == id:
                found.append(int(path.name))
    return found
