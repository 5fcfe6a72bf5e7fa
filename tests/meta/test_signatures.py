"""A public signature changes only with its line in the changelog."""

from __future__ import annotations

from pathlib import Path

import pytest
import write_signatures as tool

pytestmark = pytest.mark.docs

CHANGED = "Public signatures have changed. Add a line to CHANGELOG.md that names each, then run the tool:"
OLD = tool.written({"Thread.start": "(work)", "Limits": "class() (total)"}, tool.entries("- Old: `start`.\n"))


def test_public_signatures_are_as_they_were_written_down():
    old, new = tool.stored(tool.SNAPSHOT.read_text("utf-8")), tool.signatures()
    changed = [name for name in old | new if old.get(name) != new.get(name)]
    assert changed == [], f"{CHANGED} python tools/write_signatures.py"


def test_the_changelog_that_was_written_down_is_read():
    changelog = tool.CHANGELOG.read_text("utf-8")
    assert changelog.count("\n- ") == len(tool.entries(changelog)) > 0


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("", ["Thread.start"]),
        ("- Something else.\n", ["Thread.start"]),
        ("- `start` takes `soon`.\n", []),
    ],
    ids=["no entry", "another entry", "its entry"],
)
def test_a_changed_signature_needs_a_new_entry_that_names_it(entry: str, missing: list[str]):
    new = {"Thread.start": "(work, soon)", "Limits": "class() (total)"}
    assert tool.unmentioned(OLD, new, f"{entry}- Old: `start`.\n") == missing


def test_a_name_that_came_or_went_needs_one_too():
    new = {"Thread.start": "(work)", "Thread.stop": "()"}
    assert tool.unmentioned(OLD, new, "- Old: `start`.\n") == ["Limits", "Thread.stop"]


def test_the_tool_refuses_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    snapshot = tmp_path / "public_signatures.txt"
    monkeypatch.setattr(tool, "SNAPSHOT", snapshot)
    assert tool.main() == 0, "it knows every line that the changelog has now"
    changed = {**tool.signatures(), "Thread.start": "(other)"}
    monkeypatch.setattr(tool, "signatures", lambda: changed)
    assert tool.main() == 1
    assert "mentions them: Thread.start" in capsys.readouterr().err
    assert tool.stored(snapshot.read_text("utf-8")) != changed
