"""Finds phrases that are hard to read, in pages, docstrings and messages; `make check` runs it.

    python tools/check_prose.py [file …]

It prints `file:line`, the rule, and the sentence. The rules are in tools/prose_rules.py; a sentence that must
stay as it is has an entry, with its reason, in tools/prose_allowed.toml.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from prose_rules import RULES, Rule

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tools" / "prose_allowed.toml"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*.md")
SOURCES = ("src/**/*.py", "tools/*.py")
# The words of the seeds; and a page that is made of docstrings, which are checked where they are.
SKIPPED = {"docs/reference/seeds.md", "docs/reference/python.md"}
SPOKEN = "src/meantime/dialects/"  # its messages are prescribed by the seeds; its docstrings are ours

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"`+[^`]+`+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
MARKUP = re.compile(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
TESTS = "- [tests/"  # an item that lists the names of tests
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
LABEL = re.compile(r"^\w[\w ,/-]{0,40}: (?=[A-Z])")
END = re.compile(r"(?<=[.!?])(?:[\"”’)]*)\s+(?=[\"“‘(]?[A-Z`])")


class Text(NamedTuple):
    """A paragraph, an item, a cell or a message, and the line where it begins."""

    line: int
    text: str


class Finding(NamedTuple):
    path: str
    line: int
    sentence: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule.name}: {self.rule.advice}\n    {self.sentence}"


def check(path: str, text: str) -> Iterator[Finding]:
    """Every finding in one file, whose kind its name says."""
    units = (
        page_texts(text, newest=path == "CHANGELOG.md") if path.endswith(".md") else source_texts(path, text)
    )
    for unit in units:
        for line, sentence in sentences(unit):
            yield from (
                Finding(path, line, sentence, rule) for rule in RULES if rule.pattern.search(sentence)
            )


def sentences(unit: Text) -> Iterator[tuple[int, str]]:
    """Each sentence in one line, without markup, and with `code` for code."""
    text = CODE.sub(lambda code: "`code`" + "\n" * code[0].count("\n"), unit.text)
    text = MARKUP.sub("", LINK.sub(r"\1", text))
    start = 0
    for end in [*(found.end() for found in END.finditer(text)), len(text)]:
        sentence = " ".join(text[start:end].split())
        line = unit.line + text[:start].count("\n") + _leading(text[start:end])
        if sentence:
            yield line, sentence
            if label := LABEL.match(sentence):
                yield line, sentence[label.end() :]
        start = end


def _leading(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


def page_texts(text: str, *, newest: bool = False) -> Iterator[Text]:
    """The prose of a page: no code, comments or headings; of a changelog, only the newest section."""
    if newest:
        text = "\n## ".join(text.split("\n## ")[:2])
    text = COMMENT.sub(_blank, FENCE.sub(_blank, text))
    held: list[str] = []
    begin = 0
    for number, row in enumerate([*text.splitlines(), ""], 1):
        if row.startswith(TESTS):
            row = ""
        alone = not row.strip() or row.startswith(("#", "|", ">")) or ITEM.match(row)
        if held and alone:
            yield Text(begin, "\n".join(held))
            held = []
        if row.startswith("|"):
            yield from (
                Text(number, cell.strip()) for cell in re.split(r"(?<!\\)\|", row) if cell.strip("- ")
            )
        elif row.strip() and not row.startswith("#"):
            begin = begin if held else number
            held.append(ITEM.sub("", row))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def source_texts(path: str, text: str) -> Iterator[Text]:
    """Docstrings; and in the package every text of two words or more, as it may be a message."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstring(node)
    if path.startswith("src/") and not path.startswith(SPOKEN):
        yield from _Messages().of(tree)


def _docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Text]:
    if ast.get_docstring(node) is None or not isinstance(first := node.body[0], ast.Expr):
        return
    line = first.lineno
    for paragraph in re.split(r"\n(?=\s*\n|\s*- |\s*\w+: )", str(ast.literal_eval(first.value))):
        if not re.match(r"\n*(?:    )+(?:python|make|>>>) ", paragraph):
            yield Text(line, ITEM.sub("", paragraph))
        line += paragraph.count("\n") + 1


class _Messages(ast.NodeVisitor):
    """Finds texts that are not docstrings. The values of an f-string are `code`."""

    def __init__(self) -> None:
        self._found: list[Text] = []

    def of(self, tree: ast.AST) -> list[Text]:
        self.visit(tree)
        return self._found

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._keep(node.lineno, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [str(part.value) if isinstance(part, ast.Constant) else "`code`" for part in node.values]
        self._keep(node.lineno, "".join(parts))

    def _keep(self, line: int, text: str) -> None:
        if " " in text.strip():
            self._found.append(Text(line, text))


def allowed() -> list[dict[str, str]]:
    """The sentences that stay: each with its file, its rule, its words and its reason."""
    return tomllib.loads(ALLOWED.read_text("utf-8")).get("allowed", [])


def is_allowed(finding: Finding, entries: Iterable[dict[str, str]]) -> bool:
    return any(
        entry["path"] == finding.path
        and entry["rule"] == finding.rule.name
        and entry["text"] in finding.sentence
        for entry in entries
    )


def paths(given: list[str]) -> list[Path]:
    if given:
        return [Path(name).resolve() for name in given]
    every = sorted({path for pattern in (*PAGES, *SOURCES) for path in ROOT.glob(pattern)})
    return [path for path in every if str(path.relative_to(ROOT)) not in SKIPPED]


def main(given: list[str]) -> int:
    entries = allowed()
    found = [
        finding
        for path in paths(given)
        for finding in check(str(path.relative_to(ROOT)), path.read_text("utf-8"))
        if not is_allowed(finding, entries)
    ]
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    if found:
        sys.stdout.write(
            f"{len(found)} sentences to rewrite. tools/prose_allowed.toml is for quotations only.\n"
        )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
