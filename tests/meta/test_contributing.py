"""CONTRIBUTING.md names what is there; hooks and workflow run what a change must pass, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_hooks_come_from_no_other_repository():
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [repo["repo"] for repo in found["repos"]] == ["local"]
    programs = {hook["entry"].split()[0] for repo in found["repos"] for hook in repo["hooks"]}
    assert [program for program in programs if not re.fullmatch(r"\.venv/bin/ruff", program)] == []


def test_the_workflow_runs_what_a_change_must_pass():
    found = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    runs = [step["run"] for job in found["jobs"].values() for step in job["steps"] if "run" in step]
    assert runs == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_every_target_that_the_page_names_is_in_the_makefile():
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8")))
    named = re.findall(r"(?m)(?:^|`)make ([a-z][\w-]*)", PAGE)
    assert {"venv", "check", "test"} <= set(named)
    assert [name for name in named if name not in targets] == []


def test_every_test_that_the_page_runs_is_there():
    for path, word in re.findall(r"pytest -q (\S+)(?: -k (\w+))?", PAGE):
        assert (ROOT / path).exists()
        assert not word or re.search(rf"def test_\w*{word}", (ROOT / path).read_text("utf-8")), (path, word)
