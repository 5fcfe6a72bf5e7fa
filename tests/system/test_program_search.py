"""Programs are found as a process with that environment would find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime.system.program_search import find_program


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "hazel"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_is_found_by_its_name_on_the_path_of_the_environment(program: Path):
    assert find_program("hazel", {"PATH": f"/nowhere:{program.parent}"}) == str(program)
    assert find_program("hazel", {"PATH": "/nowhere"}) is None


def test_a_program_is_found_by_its_path_whatever_the_environment_is(program: Path):
    assert find_program(str(program), {"PATH": "/nowhere"}) == str(program)


def test_a_file_that_cannot_be_executed_is_not_a_program(program: Path):
    program.chmod(0o644)
    assert find_program("hazel", {"PATH": str(program.parent)}) is None


def test_without_a_path_of_its_own_ours_is_looked_through(program: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_program("hazel", {}) == str(program)
