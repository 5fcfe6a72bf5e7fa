"""Writes the table of versions in docs/guides/coding-agents.md again.

python tools/write_agent_versions.py [REPORT]

The pinned versions are those of tests/integrations/agents/package.json, with which `make test-all` tests.
REPORT is what a run of `make agents-newest` has found; it is kept in tests/integrations/agents/newest.json.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "coding-agents.md"
PINNED = ROOT / "tests" / "integrations" / "agents" / "package.json"
NEWEST = PINNED.with_name("newest.json")
BEGIN = "<!-- Versions: written by tools/write_agent_versions.py -->\n"
END = "<!-- End of versions -->\n"
AGENTS = {
    "claude-code": ("Claude Code", "@anthropic-ai/claude-code"),
    "codex": ("Codex", "@openai/codex"),
    "gemini": ("Gemini CLI", "@google/gemini-cli"),
    "opencode": ("OpenCode", "opencode-linux-x64"),
    "goose": ("goose", "@aaif/goose-binary-linux-x64"),
}


def table() -> str:
    packages = json.loads(PINNED.read_text("utf-8"))
    pinned = packages["dependencies"]
    found = json.loads(NEWEST.read_text("utf-8"))
    lines = [
        f"| agent | pinned, for `make test-all` | newest on {found['date']} | its scenarios passed |",
        "|---|---|---|---|",
    ]
    for key, (name, package) in AGENTS.items():
        newest = found["agents"].get(key, {"version": "–", "passed": 0, "of": 0})
        passed = f"{newest['passed']} of {newest['of']}"
        lines.append(f"| {name} | {pinned[package]} | {newest['version']} | {passed} |")
    return "\n".join(lines) + "\n"


def write() -> str:
    """The page as it should be: the table between its marks."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{PAGE} has lost its marks"
    return f"{before}{begin}{table()}{end}{after}"


if __name__ == "__main__":
    if sys.argv[1:]:
        shutil.copyfile(sys.argv[1], NEWEST)
    PAGE.write_text(write(), "utf-8")
