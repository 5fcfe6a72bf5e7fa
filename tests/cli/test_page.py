"""Pages with commands: these run, one after the other, and print what the page says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .person import Person

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "cli.md"
HTTP = ROOT / "docs" / "reference" / "http.md"
AGENTS = ROOT / "docs" / "guides" / "coding-agents.md"
BACKUP = ROOT / "docs" / "guides" / "backup.md"
PLATFORM = ROOT / "docs" / "start" / "platform.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STARTED = re.compile(r"^(?:started|queued) (t_\w{10})", re.MULTILINE)
# What differs from run to run.
MOVING = [
    (re.compile(r"\b\d+(?:\.\d)?s\b|\b\d+m\d\d\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "DATE"),
    (re.compile(r"\d+ done today"), "N done today"),
    (re.compile(r"<(/?)\d{9}>"), r"<\1NUMBER>"),
    (re.compile(r"(127\.0\.0\.1):\d+"), r"\1:PORT"),
    (re.compile(r"\(pid \d+\)|process \d+ on .*"), "PROCESS"),
    (re.compile(r"\d+\.\d MB"), "SIZE"),
    (re.compile(r"(\S) +"), r"\1 "),  # a column is as wide as its times
]


def steps(page: Path) -> list[tuple[str, str]]:
    """Each command of the page, and what it prints there."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(page.read_text("utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append((command, printed))
    return found


def settled(text: str) -> str:
    for moving, instead in MOVING:
        text = moving.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


ALL = [ROOT / "README.md", PLATFORM, PAGE, HTTP, AGENTS, pytest.param(BACKUP, marks=pytest.mark.processes)]


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_as_it_says(loner: Person, page: Path):
    if page == HTTP and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    names = loner.folder / "bin"
    names.mkdir()
    (names / "meantime").write_text(f'#!/bin/sh\nexec {sys.executable} -m meantime.app.main "$@"\n')
    (names / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in names.iterdir():
        name.chmod(0o700)
    environ = {**loner.environ, "PATH": f"{names}:{loner.environ['PATH']}"}
    real: dict[str, str] = {}  # the page's ids, and those of this run
    code = 0
    for command, printed in steps(page):
        for told, mine in real.items():
            command = re.sub(rf"\b{told[2:6]}\w*\b", mine[2:], command)
        done = subprocess.run(
            ["/bin/sh", "-c", f"(exit {code}); {command}"],
            env=environ, cwd=loner.folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        code, out = done.returncode, done.stdout.replace(str(loner.folder), "/home/you")
        for told, mine in zip(STARTED.findall(printed), STARTED.findall(out), strict=False):
            real[told] = mine
        for told, mine in real.items():
            out = out.replace(mine, told).replace(mine[2:10], told[2:10])
        assert settled(out) == settled(printed), command


def test_the_page_names_every_verb():
    from meantime.app.main import VERBS

    text = PAGE.read_text("utf-8")
    missing = [name for verbs in VERBS.values() for name in verbs if not re.search(rf"\b{name}\b", text)]
    assert missing == []
