"""The page's own files: who gets them, with which headers, and what is said when one is missing."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from meantime import HttpDoor
from meantime.surfaces.dashboard.assets import FOLDER, TYPES, Assets, installed
from meantime.surfaces.http import asgi_app

from .asking import asking
from .conftest import OpenDoor

pytestmark = [pytest.mark.anyio, pytest.mark.browsers]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "require-trusted-types-for 'script'; trusted-types lit-html; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
SAFE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def planted(folder: Path, **files: str) -> Assets:
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return Assets(folder)


async def test_the_page_and_each_of_its_files_are_served_without_a_token(open_door: OpenDoor):
    door = await open_door(auth="strict")
    page = await asking(door, "/")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    files = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in TYPES}
    assert files.keys() >= {"index.html", "app.js", "styles/list.css"}
    for name, path in files.items():
        answer = await asking(door, f"/assets/{name}")
        body = answer.body if name in installed().bundled else path.read_bytes()  # decision 57
        assert (answer.status, answer.body) == (200, body), name


async def test_a_module_of_the_first_view_passes_on_what_the_one_file_exports(door: HttpDoor):
    module = (await asking(door, "/assets/core/store.js")).body.decode()
    assert module == 'export { MOST_ROWS, Store, store } from "../opening.js";\n'
    opening = (await asking(door, "/assets/opening.js")).body.decode()
    assert opening.index("class Store {") < opening.index("class App extends PageElement {")
    assert "\nexport class" not in opening


async def test_the_page_names_the_version_and_every_module_that_it_needs(door: HttpDoor):
    page, version = (await asking(door, "/")).body.decode(), installed().version
    linked = re.findall(r'(?:src|href)="/assets/([^"]+)"', page)
    assert {name.partition("/")[0] for name in linked} == {version}
    names = {name.partition("/")[2] for name in linked}
    assert names == {"styles.css", "opening.js", "vendor/lit.js"}
    for name in linked:
        answer = await asking(door, f"/assets/{name}")
        assert (answer.status, answer.headers["cache-control"]) == (200, "max-age=31536000, immutable")


async def test_all_style_sheets_are_one_in_their_order(door: HttpDoor):
    named = re.findall(r'href="/assets/(styles/[^"]+)"', (FOLDER / "index.html").read_text())
    assert len(named) > 5
    sheet = (await asking(door, "/assets/styles.css")).body.decode()
    assert sheet == "\n".join((FOLDER / name).read_text() for name in named)


async def test_a_page_of_another_version_gets_the_files_of_now_and_keeps_none(door: HttpDoor):
    answer = await asking(door, "/assets/0123456789abcdef/log/log-view.js")
    assert answer.body == (FOLDER / "log/log-view.js").read_bytes()
    assert answer.headers["cache-control"] == "no-cache"


def test_a_changed_file_changes_the_version(tmp_path: Path):
    page = '<link rel="stylesheet" href="/assets/app.css" /><script type="module" src="/assets/app.js">'
    one, two, again = (
        planted(tmp_path / name, index_html=page, app_css="", app_js=script).version
        for name, script in (("one", "1"), ("two", "2"), ("again", "1"))
    )
    assert one == again != two


async def test_nothing_that_the_page_loads_is_missing():
    assert installed().missing == ()


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("path", ["/", "/assets/app.js", "/assets/none.js"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
async def test_every_answer_has_the_policy_and_no_cors_headers(door: HttpDoor, path: str, method: str):
    answer = await asking(door, path, {"Origin": "http://evil.example"}, method)
    assert {name: answer.headers.get(name) for name in SAFE} == SAFE
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.status == {"OPTIONS": 204, "POST": 405}.get(method, 404 if "none" in path else 200)


@pytest.mark.behaviour("P12")
async def test_a_rebinding_page_gets_nothing(door: HttpDoor):
    for path in ("/", "/assets/app.js"):
        answer = await asking(door, path, {"Host": f"evil.example:{door.port}"})
        assert answer.status == 421
        assert "access-control-allow-origin" not in answer.headers


async def test_a_file_that_the_browser_has_is_not_sent_again(door: HttpDoor):
    first = await asking(door, "/assets/app.js")
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await asking(door, "/assets/app.js", {"If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert (await asking(door, "/assets/app.js", {"If-None-Match": '"other"'})).status == 200


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [("gzip, br", True), ("br;q=1, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False),
     ("gzip; q=0.00", False), ("br", False), ("", False)],
)  # fmt: skip
async def test_gzip_is_sent_to_those_that_take_it(door: HttpDoor, accepted: str, compressed: bool):
    plain = await asking(door, "/")
    answer = await asking(door, "/", {"Accept-Encoding": accepted})
    assert answer.headers["vary"] == "Accept-Encoding"
    assert (answer.headers.get("content-encoding") == "gzip") == compressed
    assert (gzip.decompress(answer.body) if compressed else answer.body) == plain.body
    assert (answer.headers["etag"] != plain.headers["etag"]) == compressed


@pytest.mark.parametrize(
    "path",
    ["/assets/../assets.py", "/assets/%2e%2e/assets.py", "/assets/..%2fassets.py", "/assets//etc/passwd",
     "/assets/", "/assets/__init__.py", "/assets/app.js/", "/assets/app.js%00"],
)  # fmt: skip
async def test_no_path_leaves_the_folder(door: HttpDoor, path: str):
    answer = await asking(door, path)
    assert answer.status == 404
    assert b"The dashboard cannot be shown" in answer.body


async def test_a_name_in_the_error_is_not_markup(door: HttpDoor):
    answer = await asking(door, "/assets/%3Cscript%3Ealert(1)%3C/script%3E.js")
    assert b"<script" not in answer.body
    assert b"&lt;script&gt;" in answer.body


async def test_a_missing_file_makes_a_page_that_names_it_and_the_repair(
    open_door: OpenDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = '<link href="/assets/app.css"><script src="/assets/app.js"></script>'
    assets = planted(
        tmp_path / "static", index_html=page, app_css="", app_js='import {\n  a,\n} from "./gone.js";'
    )
    monkeypatch.setattr(asgi_app, "installed", lambda: assets)
    answer = await asking(await open_door(), "/")
    assert (answer.status, answer.headers["content-security-policy"]) == (500, POLICY)
    assert b"gone.js should be in" in answer.body
    assert b"pip install --force-reinstall" in answer.body


def test_files_that_are_imported_count_and_those_in_comments_do_not(tmp_path: Path):
    script = """import "./a.js";
export * from './b.js'
/** @type {import("./types.js").Row} */
import { c } from "lit";
"""
    assert planted(tmp_path / "one", index_html='<script src="/assets/x.js">', x_js=script).missing == (
        "a.js",
        "b.js",
    )
    assert planted(tmp_path / "two").missing == ("index.html",)
