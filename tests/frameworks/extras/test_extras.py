"""Nothing loads a framework before its first use, and an extra pulls nothing that its framework does not."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
FRAMEWORKS = {
    "openai-agents": "openai-agents",
    "langchain": "langchain",
    "google-adk": "google-adk",
    "claude-agent-sdk": "claude-agent-sdk",
    "agent-framework": "agent-framework-core",
    "pydantic-ai": "pydantic-ai-slim",
}
THEIR_MODULES = (
    "agents", "openai", "langchain", "langchain_core", "langgraph", "deepagents", "google.adk",
    "google.genai", "claude_agent_sdk", "mcp", "agent_framework", "pydantic", "pydantic_ai",
)  # fmt: skip
ADAPTERS = "openai_agents langchain google_adk claude_agent_sdk agent_framework pydantic_ai"
LOADED = f"""
import importlib, json, sys
import meantime
[getattr(meantime, name) for name in meantime.__all__]
for name in "{ADAPTERS}".split():
    importlib.import_module("meantime.integrations." + name)
print(json.dumps(sorted(sys.modules)))
"""


def test_meantime_and_its_adapters_load_no_framework():
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    assert not set(json.loads(said)) & set(THEIR_MODULES)


def test_the_frameworks_are_there_to_be_loaded():
    """Otherwise the test above could not fail."""
    for name in ("agents", "langchain", "google.adk", "claude_agent_sdk", "agent_framework", "pydantic_ai"):
        assert find_spec(name), name


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_an_extra_is_its_framework_alone(extra: str):
    (only,) = map(Requirement, PROJECT["optional-dependencies"][extra])
    assert only.name == FRAMEWORKS[extra]
    assert not only.extras
    assert only.marker is None


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_an_extra_pulls_what_its_framework_pulls(extra: str):
    core = [Requirement(given) for given in PROJECT["dependencies"]]
    here = [one for one in core if one.marker is None or one.marker.evaluate()]
    (framework,) = map(Requirement, PROJECT["optional-dependencies"][extra])
    ours = {name for one in (*here, framework) for name in pulled(one)}
    assert ours - set(pulled(Requirement(FRAMEWORKS[extra]))) <= {one.name for one in core}


def pulled(root: Requirement) -> Iterator[str]:
    """The distributions that pip installs for it, as those that are installed here say."""
    seen: set[tuple[str, str]] = set()
    left = [(canonicalize_name(root.name), extra) for extra in ("", *root.extras)]
    while left:
        name, extra = left.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        yield name
        for text in requires(name) or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(needed.name), of) for of in ("", *needed.extras)]
