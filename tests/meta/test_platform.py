"""One room asks the operating system for what only some systems have; nobody else in src/ does."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

SOURCE = Path(__file__).resolve().parents[2] / "src" / "meantime"
ROOM = SOURCE / "system" / "platform"
# As they stand in code. Comments and docstrings may speak of them.
CALLS = re.compile(
    r"/proc\b|pidfd|prctl|SO_PEERCRED|SO_PEERPIDFD|cgroup\.(procs|kill|controllers|subtree_control)|"
    r"/sys/fs/cgroup|pids\.max|sock_diag|fdatasync|posix_fallocate|pipe2|waitid|inotify|signalfd|memfd_create|"
    r"sigtimedwait|sigwaitinfo|psutil|F_FULLFSYNC|LOCAL_PEERCRED|\bkqueue\b|sysctlbyname"
)


def touched(source: str) -> list[str]:
    """The tokens of code that name such a call; strings included, docstrings not."""
    found: list[str] = []
    begins = True  # a string that begins a statement is a docstring
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or token.type in (tokenize.NL, tokenize.ENCODING):
            continue
        is_call = CALLS.search(token.string) or (before, token.string) == (".", "splice")
        if is_call and not (begins and token.type == tokenize.STRING):
            found.append(token.string)
        before = token.string
        begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return found


def test_nobody_else_touches_what_only_some_systems_have():
    wrong = {
        str(path.relative_to(SOURCE)): calls
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(ROOM) and (calls := touched(path.read_text()))
    }
    assert not wrong, f"these belong to src/meantime/system/platform: {wrong}"


@pytest.mark.parametrize(
    "line",
    [
        "os.pidfd_open(1)", "open('/proc/1/stat')", "f = f'/proc/{pid}/fd'", "libc.prctl(36)",
        "os.splice(1, 2)", "socket.SO_PEERCRED", "p = group / 'cgroup.procs'", "import psutil",
        "os.fdatasync(fd)",
    ],
)  # fmt: skip
def test_the_look_finds_each_of_them(line: str):
    assert touched(f'"""Speaks of /proc and pidfd."""\n\n# and of prctl\n{line}\n')


def test_the_look_lets_people_speak_of_them():
    told = '"""Of /proc and pidfd."""\n# and of prctl\nx = 1\n\ndef f():\n    """And of os.splice."""\n'
    assert touched(told) == []


def test_each_platform_has_the_same_operations():
    """Those that the room exports, by the same names and with the same parameters."""
    import inspect

    from meantime.system.platform import linux, linux_tree, posix, posix_tree

    for one, other, names in (
        (linux, posix, _chosen("__init__.py")),
        (linux_tree, posix_tree, _chosen("tree.py")),
    ):
        assert len(names) > 15
        for name in names:
            first, second = getattr(one, name), getattr(other, name)
            if callable(first):
                assert list(inspect.signature(first).parameters) == list(
                    inspect.signature(second).parameters
                ), name


def test_the_calls_of_macos_are_few_and_short_and_said_to_be_untested():
    """Nobody has run them: docs/guides/platforms.md lists each."""
    page = (SOURCE.parents[1] / "docs/guides/platforms.md").read_text()
    untested = page.partition("## Untested")[2].partition("\n## ")[0]
    functions = [
        one for one in ast.parse((ROOM / "macos.py").read_text()).body if isinstance(one, ast.FunctionDef)
    ]
    assert functions
    for one in functions:
        assert (one.end_lineno or 0) - one.lineno < 30, one.name
        assert f"`{one.name}`" in untested


def _chosen(file: str) -> list[str]:
    block = re.search(r"from \.linux\w* import \((.*?)\)", (ROOM / file).read_text(), re.DOTALL)
    assert block is not None
    return block[1].replace(",", " ").split()
