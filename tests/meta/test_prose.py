"""The checker of prose: every rule finds its bad example and leaves the good one; every source is read."""

from __future__ import annotations

import check_prose as tool
import pytest
from prose_rules import RULES, Rule

pytestmark = pytest.mark.docs


def found(path: str, text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.rule.name) for finding in tool.check(path, text)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_its_bad_example_and_leaves_the_good_one(rule: Rule):
    assert rule.name in [name for _, name in found("x.md", rule.bad)]
    assert found("x.md", rule.good) == []


def test_our_prose_is_clean():
    assert tool.main([]) == 0


def test_a_page_is_read_without_its_code_and_headings():
    page = (
        "# What it is\n\nFine. What is\nnot is said.\n\n```text\nWhat is this\n```\n\n"
        "| Of it | `Else` |\n|---|---|\n- **Who** goes there\n<!-- Those -->\n"
        "- [tests/a.py](a): what is said\n"
    )
    assert found("x.md", page) == [
        (3, "subject first"),
        (3, "reported"),
        (10, "subject first"),
        (12, "subject first"),
    ]


def test_a_question_and_a_label_are_understood():
    assert found("x.md", "What can it do? It runs.") == []
    assert found("x.md", "thread: Whose it is.") == [(1, "subject first")]


def test_only_the_newest_section_of_the_changelog_is_read():
    page = "# Changes\n\n## 0.2\n\nOf it.\n\n## 0.1\n\nOf that.\n"
    assert found("CHANGELOG.md", page) == [(5, "subject first")]


def test_docstrings_and_messages_are_read():
    source = (
        '"""A module.\n\nWhat it has."""\n\n\n'
        "def f(name: str) -> None:\n"
        '    """Those that are there."""\n'
        '    option("--x", help="Whose it is.")\n'
        '    raise ValueError(f"{name} is no name.", hint="Else, go.")\n'
        '    print(f"What {name} is, too.", "Else")\n'
    )
    assert sorted(found("src/meantime/x.py", source)) == [
        (3, "subject first"),
        (7, "subject first"),
        (8, "subject first"),
        (9, "is not a"),
        (9, "otherwise"),
        (10, "subject first"),
    ]
    spoken = sorted(found("src/meantime/dialects/x.py", source))
    assert spoken == [(3, "subject first"), (7, "subject first")]


def test_an_allowed_sentence_is_of_one_file_and_one_rule():
    (finding,) = tool.check("x.md", "Of it.")
    entry = {"path": "x.md", "rule": "subject first", "text": "Of it", "reason": "A quotation."}
    assert tool.is_allowed(finding, [entry])
    assert not tool.is_allowed(finding, [{**entry, "path": "y.md"}])
    assert not tool.is_allowed(finding, [{**entry, "rule": "otherwise"}])


def test_every_allowed_sentence_is_still_there_and_has_its_reason():
    for entry in tool.allowed():
        assert entry["reason"]
        text = (tool.ROOT / entry["path"]).read_text("utf-8")
        assert any(tool.is_allowed(finding, [entry]) for finding in tool.check(entry["path"], text)), entry
