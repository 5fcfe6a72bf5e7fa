"""A page of another origin, in a real browser, beside a daemon with tasks: it gets nothing.

tests/surfaces/http has the same without a browser, for every route. Here the browser adds what it adds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests.cli.person import Person

from .chromium import PROGRAM, needs_chromium
from .firefox import firefox, needs_firefox

pytestmark = pytest.mark.browsers

EXCHANGE = """async ([url, code, headers]) => {
  const sent = { method: "POST", headers, body: JSON.stringify({ code }) };
  try { const answer = await fetch(url + "/v1/codes/exchange", sent); return await answer.json(); }
  catch (problem) { return { code: String(problem.name) }; }
}"""
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def stranger(window: BrowserContext) -> Iterator[Page]:
    """A page of another port, which is another origin."""

    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>stranger</title>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    page = window.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    yield page
    page.close()
    server.shutdown()
    server.server_close()
    serving.join()


@pytest.fixture
def url(person: Person) -> str:
    assert person("ps").code == 0
    return person.info()["url"]


def code(person: Person, *options: str) -> str:
    return person("open", "--print", *options).out.strip().partition("#code=")[2]


@needs_chromium
@pytest.mark.behaviour("P12")
def test_a_page_of_another_origin_reads_no_task_and_no_event(stranger: Page, url: str) -> None:
    read = "url => fetch(url + '/v1/tasks').then(a => a.json(), e => ({ code: e.name }))"
    assert stranger.evaluate(read, url)["code"] == "token_needed"
    listen = """url => new Promise(done => {
      const source = new EventSource(url + "/v1/events");
      source.addEventListener("snapshot", () => done("heard"));
      source.onerror = () => { source.close(); done("refused"); };
    })"""
    assert stranger.evaluate(listen, url) == "refused"


@needs_chromium
@pytest.mark.behaviour("P12")
def test_a_page_of_another_origin_is_not_told_where_the_token_is(
    stranger: Page, person: Person, url: str
) -> None:
    """It can read a refusal, so a refusal does not name a folder of this machine."""
    read = "([url, headers]) => fetch(url + '/v1/tasks', { headers }).then(a => a.text(), e => e.name)"
    for headers in ({}, {"Authorization": "Bearer guessed"}):
        assert str(person.folder) not in stranger.evaluate(read, [url, headers])


@needs_chromium
@pytest.mark.behaviour("P12")
def test_a_page_of_another_origin_exchanges_no_code(stranger: Page, person: Person, url: str) -> None:
    known = code(person)
    # JSON needs a preflight, which is answered without POST; a text needs none, and is not JSON.
    assert stranger.evaluate(EXCHANGE, [url, known, JSON])["code"] in ("TypeError", "foreign_origin")
    assert (
        stranger.evaluate(EXCHANGE, [url, known, {"Content-Type": "text/plain"}])["code"] == "foreign_origin"
    )
    own = stranger.context.new_page()
    own.goto(f"{url}/assets/none.js")  # of our own origin, and without a script that would be quicker
    assert own.evaluate(EXCHANGE, [url, known, JSON])["access"] == "write", "and the code was not used up"


@needs_chromium
@pytest.mark.behaviour("P12")
def test_a_form_of_another_origin_starts_nothing(stranger: Page, person: Person, url: str) -> None:
    before = person.json("ps", "-a")
    with stranger.expect_navigation() as navigation:
        stranger.evaluate(
            """url => {
              const form = document.createElement("form");
              Object.assign(form, { action: url + "/v1/tasks", method: "post", enctype: "text/plain" });
              const field = document.createElement("input");
              Object.assign(field, { name: '{"command": "true", "x": "', value: '"}' });
              form.append(field);
              document.body.append(form);
              form.submit();
            }""",
            url,
        )
    assert navigation.value.status == 401
    assert person.json("ps", "-a") == before


@needs_chromium
@pytest.mark.behaviour("P12")
def test_neither_a_frame_nor_a_script_tag_of_another_origin_holds_the_page(stranger: Page, url: str) -> None:
    """The browser shows an error in place of the frame: the frame has an origin that nobody can look into."""
    problems: list[str] = []
    stranger.on("console", lambda message: problems.append(message.text))
    load = """([tag, name, value]) => new Promise(done => {
      const one = document.createElement(tag);
      one.onload = () => done("loaded");
      one.onerror = () => done("refused");
      one[name] = value;
      document.body.append(one);
    })"""
    stranger.evaluate(load, ["iframe", "src", f"{url}/"])
    assert any("frame-ancestors" in text for text in problems), problems
    assert stranger.evaluate(load, ["script", "src", f"{url}/assets/app.js"]) == "refused"


@needs_firefox
@pytest.mark.behaviour("P12")
def test_firefox_exchanges_a_code_from_our_own_page_and_from_no_other(person: Person, url: str) -> None:
    known = code(person, "--read-only")
    with firefox() as one:
        one.go(f"{url}/assets/none.js")  # of our own origin, and without a script that would be quicker
        one.evaluate(
            f"({EXCHANGE})(['{url}', '{known}', {JSON}]).then(found => document.title = found.access)"
        )
        one.until("document.title == 'read'")
        one.evaluate("fetch('/v1/tasks').then(a => a.json()).then(found => document.title = found.code)")
        one.until("document.title == 'token_needed'")


@needs_chromium
@pytest.mark.behaviour("P12")
def test_a_name_that_is_rebound_to_this_machine_gets_nothing(browser: Browser, url: str) -> None:
    port = url.rpartition(":")[2]
    rebound = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    other = browser.browser_type.launch(
        executable_path=PROGRAM, args=["--no-sandbox", "--no-first-run", rebound]
    )
    try:
        page = other.new_page()
        answer = page.goto(f"http://evil.example:{port}/")
        assert answer is not None
        assert answer.status == 421
        asked = page.evaluate("async () => (await fetch('/v1/tasks')).status")
        assert asked == 421
    finally:
        other.close()
