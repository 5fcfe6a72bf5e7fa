"""The floor of branch coverage counts branches alone, and fails below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import check_branches
import pytest

pytestmark = pytest.mark.docs


def report(tmp_path: Path, *, covered: int, branches: int) -> str:
    kernel = {
        "summary": {"covered_branches": covered, "num_branches": branches},
        "missing_branches": [[3, 5]],
    }
    lines: dict[str, Any] = {"summary": {"covered_branches": 0, "num_branches": 0}, "missing_branches": []}
    path = tmp_path / "coverage.json"
    files = {"src/meantime/kernel/model.py": kernel, "src/meantime/ports/clock.py": lines}
    path.write_text(json.dumps({"files": files}))
    return str(path)


@pytest.mark.parametrize(("covered", "code"), [(95, 0), (94, 1)])
def test_it_fails_below_the_floor(tmp_path: Path, covered: int, code: int):
    assert check_branches.main([report(tmp_path, covered=covered, branches=100)]) == code


def test_a_report_without_branches_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert check_branches.main([report(tmp_path, covered=0, branches=0)]) == 1
    assert "No branches were measured" in capsys.readouterr().out


def test_packages_and_missing_branches_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    check_branches.main([report(tmp_path, covered=1, branches=2), "--missing", "--floor", "50"])
    said = capsys.readouterr().out
    assert "src/meantime/kernel/model.py: 3->5" in said
    assert "kernel      50.0 %  1 of 2 branches" in said
    assert "at least 50 %" in said


def test_make_coverage_fails_below_95():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")
    assert "tools/check_branches.py" in makefile
    assert check_branches.FLOOR == 95.0
