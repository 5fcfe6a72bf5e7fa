"""Tokens in their file, and who is at the other end."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from meantime import InvalidInput
from meantime.surfaces.http import peers, tokens
from meantime.surfaces.http.tokens import Caller, Tokens, kept_secret


def test_P12_a_token_has_256_bits_in_a_private_file(tmp_path: Path):
    secret = kept_secret(tmp_path)
    assert len(bytes.fromhex(secret)) * 8 == 256
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert kept_secret(tmp_path) == secret, "it is made once"
    assert tokens.new_secret() != tokens.new_secret()


def test_P12_a_crash_while_it_is_made_leaves_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as crash:
        crash.setattr(os, "link", lambda *_: os.kill(os.getpid(), 9))
        child = os.fork()
        if not child:
            try:
                kept_secret(tmp_path)
            finally:
                os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9
    assert not (tmp_path / "token").exists()
    assert kept_secret(tmp_path) == (tmp_path / "token").read_text()


def test_P12_a_token_file_that_others_can_read_is_refused(tmp_path: Path):
    kept_secret(tmp_path)
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InvalidInput, match="not private"):
        kept_secret(tmp_path)


def test_P12_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "elsewhere").write_text("0" * 64)
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="Delete"):
        kept_secret(tmp_path)


@pytest.mark.parametrize("text", ["", "short", "with space " * 9])
def test_P12_a_file_without_a_token_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(InvalidInput, match="holds no token"):
        kept_secret(tmp_path)


def test_P12_a_threads_token_is_only_good_for_it():
    given = Tokens("0" * 64)
    token = given.for_thread("conv-1")
    assert given.caller(token) == Caller("conv-1", writes=True)
    assert given.caller(given.secret) == Caller(None, writes=True)
    seal = token.partition("~")[2]
    for wrong in (f"conv-2~{seal}", seal, f"~{seal}", "", "~", "ü", token[:-1], token + "0", "\udcff~x"):
        assert given.caller(wrong) is None, wrong
    with pytest.raises(InvalidInput):
        given.for_thread("../x")


class Transport:
    """As much of a transport as is asked for."""

    def __init__(self, connected: socket.socket) -> None:
        self._found = {"socket": connected, "peername": None, "sockname": None}
        if connected.family != socket.AF_UNIX:
            self._found |= {"peername": connected.getpeername(), "sockname": connected.getsockname()}

    def get_extra_info(self, name: str) -> object:
        return self._found[name]


@pytest.mark.parametrize(
    ("listens", "dials"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("127.0.0.1", "127.0.0.2"),
    ],
)
def test_P12_the_user_behind_a_tcp_connection(listens: str, dials: str):
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with socket.socket(family) as server:
        server.bind((listens if dials != "127.0.0.2" else "127.0.0.2", 0))
        server.listen()
        with socket.socket(socket.AF_INET6 if ":" in dials else socket.AF_INET) as client:
            client.connect((dials, server.getsockname()[1]))
            with server.accept()[0] as connected:
                assert peers.peer_uid(Transport(connected)) == os.geteuid()
                peer, own = connected.getpeername(), connected.getsockname()
                other = (peer[0], peer[1] ^ 1)
                assert peers.tcp_peer_uid(other, own) is None, "a socket that is not there"
                client.close()  # the kernel keeps a row for our end of it, as if root owned that
                assert peers.tcp_peer_uid(peer, own) is None, "nobody holds it any more"


def test_P12_the_user_behind_a_unix_socket():
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peers.peer_uid(Transport(one)) == os.geteuid()


@pytest.mark.parametrize(
    "peer", [("10.0.0.1", 80), ("fe80::1%eth0", 80), ("::ffff:10.0.0.1", 80), None, ("", 1)]
)
def test_P12_nobody_elsewhere_is_a_peer(peer: tuple[str, int] | None):
    assert peers.tcp_peer_uid(peer, ("127.0.0.1", 80)) is None
