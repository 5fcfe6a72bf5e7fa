"""Unmodified servers from npm and PyPI: the SDK's client asks each with and without the wrap, and gets the
same answers. `make servers` installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from tests.waiting import LIMIT

from daemon.conftest import Place
from integrations.mcp import foreign

from .conftest import SOON
from .installed_servers import EVERYTHING, FASTMCP, FETCH, NODE, PYTHON, needed

pytestmark = [pytest.mark.anyio, pytest.mark.servers]
PAGE = b"<html><body><h1>Tea</h1><p>Two <b>cups</b>.</p></body></html>"
THOUGHT = {"thought": "One.", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
ADA = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
KNOWS = {"from": "Ada", "to": "Charles", "relationType": "knows"}
EDIT = {"path": "FOLDER/new.txt", "edits": [{"oldText": "two", "newText": "three"}]}


class Server(NamedTuple):
    """`calls` are made in this order; FOLDER and URL stand for what a test has made."""

    command: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    reads: tuple[str, ...] = ()
    prompts: tuple[tuple[str, dict[str, str]], ...] = ()
    says: str = "?"  # among its answers


SERVERS = {
    "everything": Server(
        EVERYTHING,
        (
            ("echo", {"message": 'ä "quoted" \u2028'}),
            ("get-sum", {"a": 1, "b": 2.5}),
            ("get-sum", {"a": "one"}),
            ("get-tiny-image", {}),
            ("get-structured-content", {"location": "New York"}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
            ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
            ("no-such-tool", {}),
        ),
        ("demo://resource/static/document/architecture.md", "demo://resource/none"),
        (("simple-prompt", {}), ("args-prompt", {"city": "Graz", "state": "Styria"}), ("args-prompt", {})),
        says="The sum of 1 and 2.5 is 3.5",
    ),
    "filesystem": Server(
        (str(NODE / "mcp-server-filesystem"), "FOLDER"),
        (
            ("list_allowed_directories", {}),
            ("read_text_file", {"path": "FOLDER/one.txt"}),
            ("read_text_file", {"path": "FOLDER/one.txt", "head": 2}),
            ("read_media_file", {"path": "FOLDER/dot.png"}),
            ("read_text_file", {"path": "/etc/passwd"}),
            ("write_file", {"path": "FOLDER/new.txt", "content": "one\ntwo\n"}),
            ("edit_file", EDIT),
            ("list_directory", {"path": "FOLDER"}),
            ("search_files", {"path": "FOLDER", "pattern": "*.txt"}),
            ("directory_tree", {"path": "FOLDER"}),
            ("read_multiple_files", {"paths": ["FOLDER/one.txt", "FOLDER/none.txt"]}),
        ),
        says="first\\nchanged\\nthird",
    ),
    "memory": Server(
        (str(NODE / "mcp-server-memory"),),
        (
            ("create_entities", {"entities": [ADA, {**ADA, "name": "Charles"}]}),
            ("create_relations", {"relations": [KNOWS]}),
            ("search_nodes", {"query": "ada"}),
            ("delete_entities", {"entityNames": ["Charles"]}),
            ("read_graph", {}),
            ("open_nodes", {"names": 5}),
        ),
        ("memory://knowledge-graph",),
        says="Charles",
    ),
    "sequential-thinking": Server(
        (str(NODE / "mcp-server-sequential-thinking"),),
        (
            ("sequentialthinking", THOUGHT),
            ("sequentialthinking", {**THOUGHT, "thoughtNumber": 2, "nextThoughtNeeded": False}),
            ("sequentialthinking", {"thought": "without the rest"}),
        ),
        says="thoughtHistoryLength",
    ),
    "time": Server(
        (str(PYTHON / "mcp-server-time"), "--local-timezone", "UTC"),
        (
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ("convert_time", {"source_timezone": "Mars", "time": "12:00", "target_timezone": "UTC"}),
        ),
        says="T21:00:00+09:00",
    ),
    "git": Server(
        (str(PYTHON / "mcp-server-git"), "--repository", "FOLDER"),
        (
            ("git_status", {"repo_path": "FOLDER"}),
            ("git_log", {"repo_path": "FOLDER"}),
            ("git_diff_unstaged", {"repo_path": "FOLDER"}),
            ("git_add", {"repo_path": "FOLDER", "files": ["one.txt"]}),
            ("git_diff_staged", {"repo_path": "FOLDER"}),
            ("git_show", {"repo_path": "FOLDER", "revision": "HEAD"}),
            ("git_show", {"repo_path": "FOLDER", "revision": "none"}),
        ),
        says="+changed",
    ),
    "fetch": Server(
        FETCH,
        (
            ("fetch", {"url": "URL/page"}),
            ("fetch", {"url": "URL/page", "raw": True, "max_length": 20}),
            ("fetch", {"url": "URL/none"}),
        ),
        (),
        (("fetch", {"url": "URL/page"}),),
        says="Two **cups**.",
    ),
    "fastmcp": Server(
        (foreign.PYTHON, str(FASTMCP)),
        (
            ("price", {"article": "tea", "count": 3}),
            ("price", {"article": []}),
            ("counted", {"count": 3}),
            ("broken", {}),
        ),
        ("shop://articles", "shop://none"),
        (("offer", {"article": "tea"}),),
        says="Offer me some tea.",
    ),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A page on loopback, for the server that fetches."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/page"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE if found else b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def prepare(folder: Path) -> None:
    """The same folder for each run, whatever the last one has written: a repository with a change in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "one.txt").write_text("first\nsecond\nthird\n")
    (folder / "dot.png").write_bytes(bytes(100))
    said = {"NAME": "Ada", "EMAIL": "ada@example.com", "DATE": "2026-01-01T12:00:00Z"}
    whose = {f"GIT_{who}_{what}": one for who in ("AUTHOR", "COMMITTER") for what, one in said.items()}
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, env={**os.environ, **whose}, check=True, timeout=LIMIT)
    (folder / "one.txt").write_text("first\nchanged\nthird\n")


def filled(given: Any, folder: Path, url: str) -> Any:
    if isinstance(given, str):
        return given.replace("FOLDER", str(folder)).replace("URL", url)
    if isinstance(given, list | tuple):
        return [filled(one, folder, url) for one in given]
    if isinstance(given, dict):
        return {name: filled(one, folder, url) for name, one in given.items()}
    return given


@asynccontextmanager
async def connected(words: list[str], env: dict[str, str], said: list[Any]) -> AsyncIterator[Client]:
    async def logged(params: Any) -> None:
        said.append((params.level, params.data))

    target = StdioServerParameters(command=words[0], args=words[1:], env=env)
    with anyio.fail_after(2 * LIMIT):
        async with Client(target, logging_callback=logged) as client:
            yield client


async def answers(server: Server, words: list[str], env: dict[str, str], folder: Path, url: str) -> list[Any]:
    """Everything that the client was told, in order."""
    prepare(folder)
    said: list[Any] = []
    found: list[Any] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, total, message))

    async def note(what: str, asked: Any) -> None:
        try:
            answer = (await asked).model_dump(mode="json", by_alias=True)
        except Exception as problem:  # what a client is told of an error is compared, too
            answer = f"{type(problem).__name__}: {problem}"
        found.append((what, answer, sorted(map(str, said))))
        said.clear()

    async with connected(words, env, said) as client:
        found.append((client.server_info, client.server_capabilities, client.instructions))
        for name in ("list_tools", "list_resources", "list_resource_templates", "list_prompts"):
            await note(name, getattr(client, name)())
        for tool, arguments in filled(server.calls, folder, url):
            await note(tool, client.call_tool(tool, arguments, progress_callback=progressed))
        for uri in server.reads:
            await note(uri, client.read_resource(uri))
        for prompt, arguments in filled(server.prompts, folder, url):
            await note(prompt, client.get_prompt(prompt, arguments))
    return found


def wrapped(threshold: float, words: list[str]) -> list[str]:
    options = ["--wrap", "--threshold", str(threshold), "--thread", "reference"]
    return [sys.executable, "-m", "meantime", "mcp", *options, "--", *words]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=foreign.needed if name == "fastmcp" else needed) for name in SERVERS]
)
async def test_a_reference_server_gives_the_same_answers_behind_a_wrap(
    name: str, served: Place, tmp_path: Path, url: str
):
    server, folder = SERVERS[name], tmp_path / "project"
    words = filled(server.command, folder, url)
    env = {**served.environ, "MEMORY_FILE_PATH": str(folder / "memory.json")}
    own = await answers(server, words, env, folder, url)
    seen = await answers(server, wrapped(-1, words), env, folder, url)
    assert len(own) == 5 + len(server.calls) + len(server.reads) + len(server.prompts)
    for one, other in zip(seen, own, strict=True):
        assert one == other, name
    assert server.says in str(own), "it did its work"


@needed
async def test_a_slow_tool_of_a_reference_server_becomes_a_task(served: Place):
    """Of the server itself nothing is changed, and nothing is sent to it twice."""
    tool, arguments = "trigger-long-running-operation", {"duration": 8, "steps": 4}
    words = wrapped(SOON, list(SERVERS["everything"].command))
    async with connected(words, served.environ, []) as client:
        answer = await client.call_tool(tool, arguments)
        task = (answer.meta or {})["meantime/task"]
        done = await anyio.to_thread.run_sync(served.wait, task)
        assert done["state"] == "completed"
        assert "Duration: 8 seconds, Steps: 4" in done["result"]
        told = (await client.call_tool("echo", {"message": "next"})).model_dump_json()
        assert task in told
        assert "Duration: 8 seconds" in told
        assert task not in (await client.call_tool("echo", {"message": "after"})).model_dump_json()
