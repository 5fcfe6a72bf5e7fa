"""Writes the tables of docs/guides/wrap.md: what the tests compare with and without a wrap, and the versions
of both sides that they try.

python tools/write_wrap_table.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "surfaces" / "wrap" / "test_same_answers.py"
VERSIONS = TESTS.with_name("test_versions.py")
PAGE = ROOT / "docs" / "guides" / "wrap.md"
BEGIN = "<!-- what passes through: written by tools/write_wrap_table.py -->"
BEGIN_VERSIONS = "<!-- versions: written by tools/write_wrap_table.py -->"
END = "<!-- end -->"


def compared() -> list[str]:
    """The names in ASKED, in their order."""
    found = assigned(TESTS, "ASKED")
    assert isinstance(found, ast.Dict)
    return [ast.literal_eval(key) for key in found.keys if key is not None]


def assigned(file: Path, name: str) -> ast.expr:
    for node in ast.parse(file.read_text()).body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in map(ast.unparse, targets) and node.value:
            return node.value
    raise SystemExit(f"{file} has no {name}.")


def versions() -> str:
    """A row for each version of the host, a column for each of the server."""
    agreed: dict[tuple[str, str], str] = ast.literal_eval(assigned(VERSIONS, "AGREED"))
    names = list(dict.fromkeys(server for _, server in agreed))
    head = f"| host ↓ server → | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}\n"
    return head + "".join(
        f"| {host} | {' | '.join(agreed[host, server] for server in names)} |\n" for host in names
    )


def written(page: str) -> str:
    rows = "".join(f"| {name} | ✓ | ✓ | ✓ |\n" for name in compared())
    head = "| | server on stdio | server on Streamable HTTP | agent with a URL |\n|---|---|---|---|\n"
    page = replaced(page, BEGIN, head + rows)
    return replaced(page, BEGIN_VERSIONS, versions())


def replaced(page: str, mark: str, table: str) -> str:
    head, begin, rest = page.partition(mark)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} has no markers for the table.")
    return f"{head}{mark}\n{table}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
