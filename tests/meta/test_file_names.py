"""A file is named by the noun that it holds, so that its name alone finds it; and it stays short."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest

pytestmark = pytest.mark.docs

TESTS = Path(__file__).resolve().parents[1]
SRC = TESTS.parent / "src" / "meantime"
CODE = re.compile(r"_(?:[A-Z]|\d{3}_)")  # an id of a behaviour or the number of a seed
MOST = 400  # lines
# Base names that several files may have: parallel adapters, each of which is found by its folder.
SHARED = {
    "__init__": "packages",
    "__main__": "what `python -m` runs",
    "errors": "the errors of one room: kernel/ has those of the API",
    "run": "the stage of the runtime, and the verb of the command line",
    "runner": "ports/runner.py and its adapters",
    "session_host": "the adapters of ports/session.py",
    "store": "ports/store.py and its adapters",
    "turn_result": "how a turn ended, for each session host",
}
# Words in -ing that are nouns, and `meantime.blocking`, which is public.
NOUNS = {"blocking", "encoding", "paging", "ring", "routing"}
# Longer files, each with its reason and its own limit.
LONG = {
    "thread.py": (
        600,
        "Thread is the public façade: one call of ports/tasks.py a method, and more docstring than code. The "
        "blocking façade, its stub, the reference and the signatures are read from the body of that class.",
    ),
}


def files() -> Iterator[PurePosixPath]:
    for path in sorted(SRC.rglob("*.py")):
        yield PurePosixPath(path.relative_to(SRC).as_posix())


def shared_names(paths: Iterable[PurePosixPath]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        found[path.stem].append(str(path))
    return {name: where for name, where in found.items() if len(where) > 1}


def gerunds(paths: Iterable[PurePosixPath]) -> list[str]:
    """File names whose last word is a verb in -ing; a stage of the runtime may have one."""
    last_words = ((path, path.stem.rpartition("_")[2]) for path in paths)
    return [
        str(path)
        for path, word in last_words
        if word.endswith("ing") and word not in NOUNS and path.parts[0] != "runtime"
    ]


def too_long(lengths: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{name}: {length} lines" for name, length in lengths if length > LONG.get(name, (MOST, ""))[0]]


def lengths() -> Iterator[tuple[str, int]]:
    for path in files():
        yield str(path), len((SRC / path).read_text("utf-8").splitlines())


def test_no_two_files_share_a_name():
    assert {name: where for name, where in shared_names(files()).items() if name not in SHARED} == {}


def test_every_shared_name_is_needed():
    assert SHARED.keys() - shared_names(files()).keys() == set()


def test_no_file_is_named_by_a_gerund():
    assert gerunds(files()) == []


def test_no_file_is_long():
    assert too_long(lengths()) == []


def test_every_long_file_is_still_long():
    assert [name for name, length in lengths() if name in LONG and length <= MOST] == []


def test_a_bad_name_is_noticed():
    planted = [PurePosixPath(name) for name in ("kernel/limits.py", "client/limits.py", "link/hearing.py")]
    planted += [PurePosixPath(name) for name in ("runtime/stopping.py", "link/task_listing.py")]
    assert shared_names(planted) == {"limits": ["kernel/limits.py", "client/limits.py"]}
    assert gerunds(planted) == ["link/hearing.py", "link/task_listing.py"]


def test_a_long_file_is_noticed():
    planted = [("kernel/limits.py", MOST + 1), ("kernel/model.py", MOST), ("thread.py", 601)]
    assert too_long(planted) == ["kernel/limits.py: 401 lines", "thread.py: 601 lines"]


def test_no_file_of_tests_has_a_code_in_its_name():
    coded = [path.name for path in TESTS.rglob("test_*.py") if CODE.search(path.stem)]
    assert coded == [], "an id is a marker; the file is named by what its tests are about"


def test_a_code_in_the_name_of_a_file_is_noticed():
    assert all(CODE.search(name) for name in ("test_L_timeouts", "test_P12_tokens", "test_000_it"))
