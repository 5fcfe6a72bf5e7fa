"""What an ordinary call loads: agents make many, and feel how long each takes to start."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from .person import Person

HEAVY = {
    "click", "http", "email", "urllib", "ssl", "socket", "selectors", "asyncio", "msgspec", "pathlib",
    "typing", "dataclasses", "inspect", "difflib", "subprocess", "threading", "logging", "sqlite3", "secrets",
    "hashlib", "base64", "signal", "starlette", "uvicorn",
}  # fmt: skip
ROOMS = {"app", "daemon", "surfaces"}  # of ours, whatever else there is
CALLS = {
    "ps": ["ps"],
    "ps of all": ["ps", "-a"],
    "run": ["run", "-q", "--", "true"],
    "logs": ["logs", "{id}"],
    "wait": ["wait", "{id}"],
    "show": ["show", "{id}"],
    "result": ["result", "{id}"],
    "cancel": ["cancel", "{id}"],
    "threads": ["threads"],
    "inbox": ["inbox"],
}


@pytest.fixture(scope="module")
def id(person: Person) -> str:
    ended = person.start("--", "echo", "hello")
    assert person("wait", ended).code == 0
    return ended


@pytest.mark.linux_only("the variable that chooses the path loads it, and a Mac does without the variable")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_ordinary_call_loads_little(person: Person, id: str, call: list[str]):
    loaded = _loaded(person, *(word.format(id=id) for word in call))
    assert "meantime.surfaces.cli.invocation" in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    ours = {name.split(".")[1] for name in loaded if name.startswith("meantime.")}
    assert ours <= ROOMS
    app = {name for name in loaded if name.startswith("meantime.app")}
    assert app == {"meantime.app", "meantime.app.main"}


def test_one_verb_does_not_load_another(person: Person):
    verbs = {name for name in _loaded(person, "ps") if name.startswith("meantime.surfaces.cli.verbs.")}
    assert verbs == {"meantime.surfaces.cli.verbs.ps"}


def _loaded(person: Person, *arguments: str) -> set[str]:
    """Modules that this call loads, and that a bare Python here does not: an environment may add its own."""
    return _modules(person, "from meantime.app.main import main; main()", *arguments) - _bare(person)


@cache
def _bare(person: Person) -> set[str]:
    return _modules(person, "pass")


def _modules(person: Person, code: str, *arguments: str) -> set[str]:
    noted = f"import sys\ntry:\n    {code}\nfinally:\n    sys.stderr.write('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", noted, *arguments],
        env=person.environ, cwd=person.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    return set(done.stderr.split("\n"))
