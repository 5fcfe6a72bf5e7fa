"""The workflow of a release: it publishes what it has tested and built, and holds no password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.docs

FILE = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "release.yml"


@pytest.fixture
def workflow() -> dict[Any, Any]:
    return yaml.safe_load(FILE.read_text())


def test_it_runs_for_a_tag_alone(workflow: dict[Any, Any]):
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML takes the key `on` for a truth value


def test_it_holds_no_password():
    assert "secrets." not in FILE.read_text()
    assert "password" not in FILE.read_text().partition("jobs:")[2]


def test_what_is_published_was_tested_and_built_by_the_job_before(workflow: dict[Any, Any]):
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert publish["needs"] == "build"
    commands = [step["run"] for step in build["steps"] if "run" in step]
    assert commands.index(".ci/run") < commands.index("pipx run build --outdir dist")
    assert not any("build" in step.get("run", "") for step in publish["steps"])


def test_each_job_may_do_no_more_than_it_needs(workflow: dict[Any, Any]):
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "write" not in workflow["jobs"]["build"]["permissions"]["contents"]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] > 0
