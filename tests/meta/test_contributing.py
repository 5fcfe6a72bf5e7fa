"""CONTRIBUTING.md names what is there; hooks and workflow run what a change must pass, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.selection import CORE, FAMILIES

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


def test_every_family_of_tests_is_named_where_one_looks_for_it():
    testing = (ROOT / "docs" / "internals" / "testing.md").read_text("utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+)` \| \w+s,? ", testing)) >= FAMILIES.keys()
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"(?m)^FAMILIES := (.*)$", makefile)[0].split() == [CORE, *FAMILIES]
    assert [name for name in FAMILIES if f"`{name}`" not in PAGE] == []


def test_few_long_tests_are_in_the_core_and_each_says_why():
    reasons = [
        reason
        for path in ROOT.glob("tests/**/test_*.py")
        for reason in re.findall(r'mark\.core\("([^"]+)"\)', path.read_text("utf-8"))
    ]
    assert len(reasons) <= 40
    assert min(map(len, reasons)) > 10
