"""A framework's agent needs at most four lines on its user's side, in the example of each guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"\b(Talk|Background|TalkBackground|talk|work)\b")
TALKS = [
    code
    for name in ("frameworks.md", "langchain.md", "google-adk.md", "agents-in-python.md")
    for code in FENCE.findall((GUIDES / name).read_text("utf-8"))
    if "Talk(" in code
]
ADAPTER = re.compile(r"integrations\.(\w+) import")


def test_every_framework_has_an_example():
    imported = {found for code in TALKS for found in ADAPTER.findall(code)}
    adapters = {
        "openai_agents",
        "claude_agent_sdk",
        "agent_framework",
        "langchain",
        "google_adk",
        "pydantic_ai",
    }
    assert imported == adapters


@pytest.mark.parametrize("code", TALKS, ids=lambda code: ADAPTER.findall(code)[0])
def test_the_user_writes_at_most_four_lines(code: str):
    lines = [line for line in code.splitlines() if OURS.search(line) and " import " not in line]
    assert 2 <= len(lines) <= 4, "\n".join(lines)
