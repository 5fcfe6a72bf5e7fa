"""`meantime open` and `meantime token`: the way to the page, for oneself and for others."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from .person import Person

pytestmark = pytest.mark.processes

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#code=([\w-]{32})(?:&go=(/\S+))?")


@pytest.fixture(scope="module")
def task(person: Person) -> str:
    id = person.start("--thread", "conv-7", "--", "true")
    assert person("wait", "-q", id).code == 0
    return id


def asked(url: str, path: str, body: object = None, token: str = "") -> Any:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    try:
        request = urllib.request.Request(url + path, data, headers)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


def exchanged(link: str) -> Any:
    url, code, _ = LINK.fullmatch(link.strip()).groups()
    return asked(url, "/v1/codes/exchange", {"code": code})


def test_the_printed_link_works_once(person: Person):
    link = person("open", "--print").out
    assert exchanged(link)["access"] == "write"
    assert exchanged(link)["code"] == "code_used"


def test_a_read_only_link_only_reads(person: Person, task: str):
    link = person("open", "--read-only", "--print").out
    url, token = LINK.fullmatch(link.strip())[1], exchanged(link)["token"]
    assert asked(url, "/v1/tasks", token=token)["total"] >= 1
    assert asked(url, "/v1/tasks", {"command": "true"}, token)["code"] == "read_only_token"


def test_a_task_a_prefix_of_it_and_a_thread_are_named_in_the_link(person: Person, task: str):
    for ref in (task, task[2:10]):
        assert LINK.fullmatch(person("open", ref, "--print").out.strip())[3] == f"/tasks/{task}"
    assert LINK.fullmatch(person("open", "conv-7", "--print").out.strip())[3] == "/threads/conv-7"
    unknown = person("open", "nobody", "--print")
    assert (unknown.code, unknown.err.splitlines()[0]) == (3, "meantime: No task or thread 'nobody'.")


def test_a_thread_and_a_question_bind_the_page(person: Person, task: str):
    bound = person("open", "--thread", "conv-7", "--print").out
    assert LINK.fullmatch(bound.strip())[3] == "/threads/conv-7"
    assert exchanged(bound)["thread"] == "conv-7"
    assert exchanged(person("open", task, "--question", "--print").out)["question"] == task
    without = person("open", "--question", "--print")
    assert (without.code, "--question needs a task" in without.err) == (2, True)


def test_the_base_is_the_address_of_the_api(person: Person):
    base = person("open", "--base").out.strip()
    assert asked(base, "/v1/health")["status"] == "ok"
    told = person.json("open")
    assert told["base"] == base
    assert LINK.fullmatch(told["url"])


@pytest.mark.linux_only("a browser is started where the system says who is behind a connection")
def test_the_browser_is_started_with_a_link_for_this_user(person: Person, task: str):
    seen, browser = person.folder / "seen", person.folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o700)
    done = person("open", task, environ={"BROWSER": str(browser)})
    assert (done.code, done.out) == (0, f"opened {person('open', '--base').out}")
    assert exchanged(seen.read_text())["access"] == "write"
    assert "code=" not in done.out


@pytest.mark.linux_only("a browser is started where the system says who is behind a connection")
def test_a_machine_without_a_browser_gets_the_link(person: Person):
    done = person("open", environ={"BROWSER": "/bin/false", "PATH": "/nowhere"})
    assert (done.code, "Open the link above yourself" in done.err) == (1, True)
    assert exchanged(done.out)["access"] == "write"


def test_without_tcp_it_says_what_to_do(loner: Person):
    (loner.folder / "config.toml").write_text("[http]\nenabled = false\n")
    done = loner("open", "--print")
    assert done.code == 1
    assert "no address for browsers" in done.err
    assert "http.enabled" in done.err


def test_tokens_are_made_listed_and_revoked(person: Person, task: str):
    url = person("open", "--base").out.strip()
    made = person("token", "create", "the", "wall", "screen", "--days", "7")
    token, id = made.out.strip(), made.err.split()[-1]
    assert asked(url, "/v1/access", token=token)["access"] == "read"
    row = next(line for line in person("token", "list").out.splitlines() if line.startswith(id))
    assert re.match(rf"{id} +the wall screen +read +valid +\S.* ago +in (6d|7d00h)", row), row
    assert token not in row
    assert person("token", "revoke", id).out == f"revoked {id} (the wall screen)\n"
    assert asked(url, "/v1/access", token=token)["code"] == "token_revoked"
    assert "revoked" in person("token", "list").out
    assert person("token", "revoke", "nobody").code == 3
    assert person("token", "create").code == person("token", "revoke").code == 2


def test_a_token_can_be_bound_to_a_thread_or_a_question(person: Person, task: str):
    def created(*options: str) -> Any:
        return person.json("token", "create", "x", *options)

    bound = created("--thread", "conv-7", "--write")
    assert (bound["access"], bound["thread"]) == ("write", "conv-7")
    asking = created("--question", task[2:10])
    assert (asking["access"], asking["question"]) == ("write", task)


def test_tokens_survive_a_restart_of_the_daemon(loner: Person, tmp_path: Path):
    assert loner("up").code == 0
    token = loner.json("token", "create", "x")["token"]
    revoked = loner.json("token", "create", "y")
    assert loner("token", "revoke", revoked["id"]).code == 0
    assert loner("down").code == 0
    assert loner("up").code == 0
    url = loner("open", "--base").out.strip()
    assert asked(url, "/v1/access", token=token)["access"] == "read"
    assert asked(url, "/v1/access", token=revoked["token"])["code"] == "token_revoked"
    assert token.rpartition("_")[2] not in (loner.home / "tokens.json").read_text()
