"""Tokens of the wrap's own, for servers over HTTP that ask for a login: in a private file, or in the
configuration."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.conftest import Place, place_in

from .conftest import SECRET, Host, texts

pytestmark = pytest.mark.breadth

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, guard: str) -> Iterator[Place]:
    with place_in(tmp_path_factory.mktemp("served")) as made:
        token = json.dumps(f"Bearer {SECRET}-configured")
        server = f"[mcp.servers.guard]\nurl = {json.dumps(guard)}\nheaders = {{ Authorization = {token} }}\n"
        made.configure(f"[http]\nport = 0\n{server}")
        made.home.config.chmod(0o600)
        made.up()
        yield made


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    made = tmp_path / "headers"
    made.touch(0o600)
    made.write_text(f"Authorization: Bearer {SECRET}-filed\nX-Other: one\n")
    return made


def assert_kept_nowhere(at: Place) -> None:
    files = [file for file in at.home.folder.rglob("*") if file.is_file()]
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


def test_a_token_in_a_private_file_reaches_the_server_and_is_kept_nowhere(
    served: Place,
    guard: str,
    secret_file: Path,
):
    with Host(served, "--wrap", "--headers", str(secret_file), "--thread", "filed", guard) as host:
        host.hello()
        assert texts(host.call("who")) == ["-filed"]  # type: ignore[attr-defined]
    assert_kept_nowhere(served)


@pytest.mark.parametrize("words", [(), ("--prefix",)])
def test_a_token_that_is_renewed_in_the_file_is_used_by_the_next_request(
    served: Place, guard: str, secret_file: Path, words: tuple[str, ...]
):
    server, tool = (f"it={guard}", "it__who") if words else (guard, "who")
    more = ("guard",) if words else ()
    with Host(
        served, "--wrap", "--headers", str(secret_file), "--thread", "renewed", *words, server, *more
    ) as host:
        host.hello()
        assert texts(host.call(tool)) == ["-filed"]
        secret_file.write_text("half a li")
        assert texts(host.call(tool)) == ["-filed"], "it is being written"
        secret_file.write_text(f"Authorization: Bearer {SECRET}-renewed\n")
        secret_file.chmod(0o644)
        assert texts(host.call(tool)) == ["-filed"], "others may have written it"
        secret_file.chmod(0o600)
        assert texts(host.call(tool)) == ["-renewed"]
        if words:
            assert texts(host.call("guard__who")) == ["-configured"]
        served.down()
        served.up()
        assert texts(host.call(tool)) == ["-renewed"], "the next daemon has it too"
        fresh = secret_file.with_name("fresh")  # as programs that renew a token replace a file
        fresh.touch(0o600)
        fresh.write_text(f"authorization: Bearer {SECRET}-again\n")
        fresh.replace(secret_file)
        assert texts(host.call(tool)) == ["-again"]
    assert_kept_nowhere(served)


@pytest.mark.parametrize(
    "words", [("guard",), ("--", "server"), ("--prefix", "guard"), ("--prefix", "a=http://x", "b=http://y")]
)
def test_headers_are_for_one_url(served: Place, secret_file: Path, words: tuple[str, ...]):
    """A token is never sent to a server that it is not meant for, nor passed over in silence."""
    said = served.cli("mcp", "--wrap", "--headers", str(secret_file), *words)
    assert said.returncode == 2
    assert "--headers is for one server with a URL." in said.stderr


def test_a_token_in_the_configuration_reaches_the_server_and_is_kept_nowhere(served: Place):
    with Host(served, "--wrap", "--thread", "configured", "guard") as host:
        host.hello()
        assert texts(host.call("who")) == ["-configured"]  # type: ignore[attr-defined]
    assert_kept_nowhere(served)


def test_without_a_token_the_error_says_that_the_server_asks_for_a_login(served: Place, guard: str):
    with Host(served, "--wrap", "--thread", "none", guard) as host:
        error = host.answer(host.send("initialize", HELLO))["error"]
        assert "login" in error["message"]


def test_a_server_that_cannot_be_reached_is_named_without_what_may_be_secret(served: Place):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        port = nobody.getsockname()[1]
        url = f"http://me:{SECRET}@127.0.0.1:{port}/{SECRET}?key={SECRET}"
        with Host(served, "--wrap", "--thread", "nobody", url) as host:
            error = host.answer(host.send("initialize", HELLO))["error"]["message"]
    assert error.startswith(f"The server at 127.0.0.1:{port} cannot be reached: ")
    assert SECRET not in error


def test_a_file_that_others_can_read_is_refused(served: Place, guard: str, secret_file: Path):
    secret_file.chmod(0o644)
    said = served.cli("mcp", "--wrap", "--headers", str(secret_file), guard)
    assert said.returncode == 2
    assert "Other users may read" in said.stderr
    assert SECRET not in said.stderr + said.stdout


def test_a_line_that_is_not_a_header_is_refused(served: Place, guard: str, secret_file: Path):
    secret_file.write_text(f"{SECRET}\n")
    said = served.cli("mcp", "--wrap", "--headers", str(secret_file), guard)
    assert said.returncode == 2
    assert "is not a header" in said.stderr
    assert SECRET not in said.stderr + said.stdout
