"""The page's files as they are: small, readable, typed, and without a way to run the text of a task."""

from __future__ import annotations

import gzip
import hashlib
import os
import posixpath
import re
import subprocess
from pathlib import Path

import pytest

from meantime.surfaces.dashboard.assets import BUNDLE, FOLDER, SHEET, installed
from meantime.surfaces.dashboard.module_bundle import declared, in_order, joined, passed_on

pytestmark = pytest.mark.browsers

ROOT = Path(__file__).resolve().parents[3]
COMPILER = ROOT / ".typescript/node_modules/.bin/tsc"
MOST_GZIPPED = 80_000  # bytes, with everything that the first view needs; 56,000 in November 2026
MOST_OF_A_VIEW = 16_000
LAZY = (
    "task/task-page.js",
    "task/answer-page.js",
    "thread/thread-page.js",
    "log/log-view.js",
    "timeline/timeline-view.js",
    "messages/messages-view.js",
    "workers/workers-page.js",
    "list/list-extras.js",
)
MOST_LINES = 300

MODULES = sorted(path for path in FOLDER.rglob("*.js") if path.parent.name != "vendor")
SHEETS = sorted(FOLDER.rglob("*.css"))

# Each would let a text become markup or code, or would be refused by the page's policy.
FORBIDDEN = (
    r"innerHTML",
    r"outerHTML",
    r"insertAdjacentHTML",
    r"document\.write",
    r"unsafeHTML|unsafeSVG|unsafeCSS",
    r"\beval\(|new Function\(",
    r"createPolicy",
    r"setAttribute\(\s*[\"']style",
    r"<[a-z][^>`]*\sstyle=",
    r"<style",
    r"https?://(?!www\.w3\.org/2000/svg)",
)


def named(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def loaded(*names: str) -> set[str]:
    """The files that a browser loads with these: links, and imports that do not wait for a view."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        text = (FOLDER / name).read_text("utf-8")
        if name.endswith(".html"):
            left += re.findall(r'(?:src|href)="/assets/([^"]+)"', text)
        elif name.endswith(".js"):
            imported = re.findall(r'^(?:import|export)\b[^"\';()]*"(\.{1,2}/[^"]+)"', text, re.MULTILINE)
            left += [posixpath.normpath(posixpath.join(posixpath.dirname(name), each)) for each in imported]
    return found


def gzipped(names: set[str]) -> dict[str, int]:
    return {name: len(gzip.compress((FOLDER / name).read_bytes(), 9)) for name in names}


def test_opening_the_page_loads_at_most_80_kb_gzipped():
    served = installed()
    own = {name for name in loaded("index.html") if name.endswith(".js")} - {"vendor/lit.js"}
    assert set(served.bundled) == own
    assert served.opening == (SHEET, BUNDLE, "vendor/lit.js")
    sizes = {name: len(served.files[name].compressed or b"") for name in served.opening}
    sizes["/"] = len(served.page.compressed or b"")
    assert sum(sizes.values()) <= MOST_GZIPPED, sorted(sizes.items(), key=lambda item: -item[1])[:10]


def test_modules_of_the_first_view_declare_no_name_twice():
    """They are served as one file, so they share one scope: rename one of the two."""
    of: dict[str, list[str]] = {}
    for module, text in installed().bundled.items():
        for name in declared(text):
            of.setdefault(name, []).append(module)
    lit = re.findall(r"[\w$]+(?= *[,}])", installed().files[BUNDLE].data.decode("utf-8").split("\n", 1)[0])
    assert "html" in lit
    assert {name: modules for name, modules in of.items() if len(modules) > 1 or name in lit} == {}


def test_one_file_has_the_modules_in_order_and_passes_on_what_they_export():
    modules = {
        "core/a.js": (
            'import { html } from "../vendor/lit.js";\n'
            'export let at = 1;\nexport const b = () => import("./later.js");\n'
        ),
        "c.js": (
            'import "./core/side.js";\nimport {\n  at,\n  b,\n} from "./core/a.js";\n'
            "function c() {}\nb(at, c);\n"
        ),
        "core/side.js": "document.title = 'x';\n",
        "core/later.js": "export class Later {}\n",
    }
    order = in_order(["c.js"], modules)
    assert order == ["core/side.js", "core/a.js", "c.js"]
    assert joined({name: modules[name] for name in order}) == (
        'import { html } from "./vendor/lit.js";\n'
        "// core/side.js\ndocument.title = 'x';\n"
        '// core/a.js\nlet at = 1;\nconst b = () => import("./core/later.js");\n'
        "// c.js\nfunction c() {}\nb(at, c);\n"
        "export { at, b };\n"
    )
    assert passed_on("core/a.js", modules["core/a.js"], "o.js") == 'export { at, b } from "../o.js";\n'
    assert passed_on("c.js", modules["c.js"], "o.js") == 'import "./o.js";\n'


@pytest.mark.parametrize("view", LAZY)
def test_a_view_that_is_opened_later_adds_at_most_16_kb_gzipped(view: str):
    sizes = gzipped(loaded(view) - loaded("index.html"))
    assert view in sizes, "it is loaded with the page"
    assert sum(sizes.values()) <= MOST_OF_A_VIEW, sizes


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_is_short_typed_and_says_what_it_is(path: Path):
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[0] == "// @ts-check"
    assert lines[1].startswith("/**"), "the second line begins the comment that says what the module is"


@pytest.mark.parametrize("path", [*MODULES, *SHEETS, FOLDER / "index.html"], ids=named)
def test_no_file_turns_text_into_markup_or_loads_from_elsewhere(path: Path):
    text = path.read_text("utf-8")
    found = [pattern for pattern in FORBIDDEN if re.search(pattern, text)]
    assert found == []


def test_lit_is_the_file_that_its_record_says():
    record = (FOLDER / "vendor/README.md").read_text("utf-8")
    assert hashlib.sha256((FOLDER / "vendor/lit.js").read_bytes()).hexdigest() in record
    assert "BSD-3-Clause" in record


@pytest.mark.skipif(
    not COMPILER.exists() and os.environ.get("CI") != "true",
    reason="TypeScript is not installed: make typescript",
)
def test_a_mistake_in_a_type_is_found(tmp_path: Path):
    """`make check` runs the compiler on the page; here it is shown that it would find something."""
    wrong = tmp_path / "wrong.js"
    wrong.write_text(f'// @ts-check\nimport {{ count }} from "{FOLDER}/core/format.js";\ncount("many");\n')
    settings = tmp_path / "tsconfig.json"
    settings.write_text(f'{{"extends": "{Path(__file__).parent}/tsconfig.json", "include": ["wrong.js"]}}')
    done = subprocess.run([COMPILER, "-p", settings], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "wrong.js(3,7)" in done.stdout
