"""The structure of the package does not get worse, and what measures it can be believed."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import draw_start
import measure_link
import measure_structure as measure
import pytest
import traced_starts
import walk_figures
from call_trace import Call, Recorder, room_of

pytestmark = pytest.mark.docs

# Rooms that import each other today. None may be added; those that are mended are taken off the list.
CIRCULAR = [
    ["__init__", "app"],  # names that are loaded when they are first used
    ["testing", "testing/dialect"],
    ["testing", "testing/engine"],
]
MOST_FILES, MOST_CHANGES = 40, 60  # that one start of a command walks through
MOST_PASSING = 17  # functions that only pass on, for no reason that the source shows
SHARED = Path(__file__).with_name("shared_names.txt")  # how many files have a name, where several do today


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return measure.figures()


# -- the package


def test_no_files_import_each_other_in_a_circle(figures: dict[str, Any]):
    assert figures["cycles of files"] == []


def test_no_more_rooms_import_each_other(figures: dict[str, Any]):
    new = [pair for pair in figures["rooms that import each other"] if pair not in CIRCULAR]
    assert not new, "one of the two must not know the other: move what both need below them"


def test_no_more_files_share_their_base_name(figures: dict[str, Any]):
    lines = (line.split() for line in SHARED.read_text("utf-8").splitlines())
    known = {name: int(count) for count, name in lines}
    found = figures["shared base names"]["names"]
    more = [name for name, count in found.items() if count > known.get(name, 1)]
    assert not more, "name the new file by the noun that it holds; no other file has that name"


def test_the_figures_can_be_printed(figures: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    walk = [call("thread.py", "start"), call("kernel/a.py", "check", ("thread.py", "start"))]
    text = measure.report(
        {**figures, "walk": {"start": walk_figures.walk_figures(walk)}}, files=True, gains=True
    )
    assert "2 files, 1 changes of file, 1 of room, 1 hops" in text
    assert f"max {figures['module lines']['max']}" in text


def test_a_start_walks_no_further_than_it_does():
    """Files that a reader opens to follow `thread.start(Shell(…))`, and how often the call changes rooms."""
    walk = walk_figures.walk_figures(traced_starts.embedded().until_started)
    assert walk["files"] <= MOST_FILES, list(walk["by file"])
    assert walk["changes of room"] <= MOST_CHANGES, list(walk["by hop"])


# -- the pictures


@pytest.mark.parametrize("way", traced_starts.WAYS)
def test_each_way_of_a_start_has_its_picture(way: str):
    picture = draw_start.picture_file(way).read_text("utf-8")
    assert draw_start.PLAN[way].title in picture
    assert "prefers-color-scheme: dark" in picture
    assert draw_start.named(picture)


def test_the_picture_names_every_stage_that_a_start_enters():
    entered = draw_start.stages(traced_starts.embedded())
    assert len(entered) > 5
    shown = draw_start.named(draw_start.picture_file("embedded").read_text("utf-8"))
    assert entered <= shown, "stale: run `python tools/draw_start.py`"


def test_a_start_over_mcp_with_an_empty_inbox_is_one_request():
    asked = [frame.verb for frame in measure_link.frames_of_a_start() if frame.tag == "ask"]
    assert asked == ["start"]


# -- what measures


def call(file: str, name: str, caller: tuple[str, str] | None = None, path: str = "task 1") -> Call:
    return Call(0, path, file, name, caller, "outside" if caller is None else "call")


def source(path: str, text: str) -> measure.Source:
    return measure.Source(path, len(text.splitlines()), ast.parse(text))


def test_a_circle_of_imports_is_found_and_a_deferred_one_is_told_apart():
    found = [
        source("__init__.py", ""),
        source("one/a.py", "from meantime.two import b"),
        source("one/c.py", "import os"),
        source("two/b.py", "def later():\n    from ..one.a import x\n"),
        source("two/__init__.py", "from . import b\nif TYPE_CHECKING:\n    from meantime.one import c\n"),
    ]
    edges = measure.imports(found)
    assert measure.Import("one/a.py", "two/b.py", False) in edges
    assert measure.Import("two/b.py", "one/a.py", True) in edges
    assert measure.Import("two/__init__.py", "one/c.py", True) in edges
    assert measure.cycles((edge[0], edge[1]) for edge in edges) == [["one/a.py", "two/b.py"]]
    assert measure.cycles((edge[0], edge[1]) for edge in edges if not edge.is_deferred) == []
    assert measure.circular_rooms(edges) == [["one", "two"]]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("def f(a, *, b):\n    'says'\n    return g(a, b=b)", True),
        ("class C:\n    async def f(self, a):\n        await self._g.h(a)", True),
        ("class C:\n    def close(self):\n        self._g.close()", True),
        ("def f(*a, **b):\n    g(*a, **b)", True),
        ("def f(**b):\n    g(b)", False),
        ("def f():\n    return g()", False),
        ("def f(a):\n    return g(a, 1)", False),
        ("def f(a, b):\n    return g(a)", False),
        ("def f(a):\n    return g(b=a)", False),
        ("def f(a):\n    h(a)\n    return g(a)", False),
        ("def f(a):\n    return g(a)(a)", False),
    ],
)
def test_a_function_that_only_passes_on_is_told_from_one_that_does_something(text: str, passes: bool):
    assert bool(measure.pass_throughs(ast.parse(text))) is passes


def test_a_function_that_only_passes_on_has_a_reason():
    text = """
class Store(Protocol):
    def load(self): ...
    def save(self): ...
class Disk:
    def load(self):
        return self._file.load()
    def save(self):
        return self._file.save()
    def flush(self):
        return self._file.flush()
    def hurry(self):
        self._event.set()
    async def slow(self, a):
        return self._file.fast(a)
    def __len__(self):
        return self._file.size()
class Half:
    def load(self):
        return self._file.load()
class Thread:
    def start(self, work):
        return self._runtime.start(work)
"""
    trees = {"__init__.py": ast.parse('NAMES = "Thread Turn"'), "disk.py": ast.parse(text)}
    passing = {path: measure.pass_throughs(tree) for path, tree in trees.items()}
    assert measure.by_reason(trees, passing) == {
        "Python's own": ["disk.py: Disk.__len__"],
        "public": ["disk.py: Thread.start"],
        "a port": ["disk.py: Disk.load", "disk.py: Disk.save"],
        "makes it async": ["disk.py: Disk.slow"],
        "own state": ["disk.py: Disk.hurry"],
        "a neighbour": ["disk.py: Disk.flush", "disk.py: Half.load"],
    }


def test_no_more_functions_only_pass_on_to_a_neighbour(figures: dict[str, Any]):
    found = figures["pass-through functions"]["by reason"]["a neighbour"]
    assert len(found) <= MOST_PASSING, found


def test_names_that_python_chose_are_not_shared_names():
    files = ["a/__init__.py", "b/__init__.py", "a/x.py", "b/x.py", "y.py"]
    assert measure.shared_names(files) == {"x.py": ["a/x.py", "b/x.py"]}


def test_docstring_lines_are_counted():
    text = '"""One\ntwo."""\nclass C:\n    """Three."""\n    x = "not one"\n    def f(self): "Four."\n'
    assert measure.docstring_lines(ast.parse(text)) == 4


@pytest.mark.parametrize(("share", "value"), [(0.5, 2), (0.75, 3), (0.95, 4), (1.0, 4)])
def test_a_percentile_is_one_of_the_values(share: float, value: int):
    assert measure.percentile([4, 3, 2, 1], share) == value


def test_changes_of_room_are_counted_along_each_path():
    start = ("thread.py", "start")
    calls = [
        call("thread.py", "start"),
        call("runtime/a.py", "go", path="task 2"),
        call("kernel/b.py", "check", start),
        call("kernel/b.py", "text", ("kernel/b.py", "check")),
        call("runtime/a.py", "on", ("runtime/a.py", "go"), path="task 2"),
        call("turn.py", "more", start),
    ]
    assert walk_figures.changes(calls) == 2
    assert [one.name for one in walk_figures.hops(calls)] == ["check"]
    assert walk_figures.gains(calls) == {"kernel/b.py:check": 2}, "what it calls is not called either"


def test_a_coroutine_is_one_call_and_says_who_scheduled_it(tmp_path: Path):
    module = loaded(
        tmp_path / "room" / "work.py",
        """
        import asyncio
        class Work:
            async def inner(self):
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                return [each for each in range(3)]
            async def outer(self):
                await self.inner()
                await asyncio.create_task(self.inner())
        """,
    )
    recorder = Recorder(package=tmp_path)
    recorder.install()
    try:
        recorder.is_recording = True
        asyncio.run(module.Work().outer())
    finally:
        recorder.remove()
    outer = ("room/work.py", "Work.outer")
    assert [(one.name, one.caller, one.how) for one in recorder.calls] == [
        ("Work.outer", None, "outside"),
        ("Work.inner", outer, "call"),
        ("Work.inner", outer, "task"),
    ]
    assert len({one.path for one in recorder.calls}) == 2
    assert room_of(recorder.calls[0].file) == "room"


def loaded(path: Path, text: str) -> ModuleType:
    path.parent.mkdir()
    path.write_text("\n".join(line[8:] for line in text.splitlines()), "utf-8")
    spec = importlib.util.spec_from_file_location("traced_work", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
