"""Tokens in their file, and who is at the other end."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.waiting import LIMIT

from meantime import InvalidInput
from meantime.surfaces.http import peers, tokens
from meantime.surfaces.http.tokens import Caller, Tokens, kept_secret


@pytest.mark.behaviour("P12")
def test_a_token_has_256_bits_in_a_private_file(tmp_path: Path):
    secret = kept_secret(tmp_path)
    assert len(bytes.fromhex(secret)) * 8 == 256
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert kept_secret(tmp_path) == secret, "it is made once"
    assert tokens.new_secret() != tokens.new_secret()


def no_links(*_: object) -> None:
    """A fake: as a file system without them answers. The tests' own has them."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("moment", ["link", "rename"])
def test_a_crash_while_it_is_made_leaves_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
):
    with monkeypatch.context() as crash:
        crash.setattr(os, "link", no_links)
        crash.setattr(os, moment, lambda *_: os.kill(os.getpid(), 9))
        child = os.fork()
        if not child:
            try:
                kept_secret(tmp_path)
            finally:
                os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9
    assert not (tmp_path / "token").exists()
    assert kept_secret(tmp_path) == (tmp_path / "token").read_text()


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("links", [True, False])
def test_all_that_make_it_at_once_have_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool):
    """Each has seen that there is none. Also on a file system without links."""
    together, link = Barrier(8), os.link if links else no_links

    def linked(*paths: Path) -> None:
        together.wait(LIMIT)
        link(*paths)

    monkeypatch.setattr(os, "link", linked)
    with ThreadPoolExecutor(8) as makers:
        (secret,) = set(makers.map(kept_secret, [tmp_path] * 8))
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    assert (tmp_path / "token").read_text() == secret
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


@pytest.mark.behaviour("P12")
def test_without_links_it_is_looked_for_again_under_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def lock(place: int, how: int) -> None:
        """As if another maker had held it until now."""
        (tmp_path / "token").touch(0o600)
        (tmp_path / "token").write_text("0" * 64)
        assert (os.path.samestat(os.fstat(place), tmp_path.stat()), how) == (True, fcntl.LOCK_EX)

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(fcntl, "flock", lock)
    assert kept_secret(tmp_path) == "0" * 64


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("links", [True, False])
def test_its_name_is_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool):
    synced: list[bool] = []  # of the folder: whether the token was in it

    def fsync(place: int) -> None:
        if stat.S_ISDIR(os.fstat(place).st_mode):
            synced.append((tmp_path / "token").exists())

    monkeypatch.setattr(os, "fsync", fsync)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    kept_secret(tmp_path)
    assert synced == [True]


@pytest.mark.behaviour("P12")
def test_a_token_that_cannot_be_made_says_what_to_do(tmp_path: Path):
    with pytest.raises(InvalidInput, match="cannot be made: No such file") as refused:
        kept_secret(tmp_path / "gone")
    assert f"write to {tmp_path / 'gone'}" in refused.value.hint


@pytest.mark.behaviour("P12")
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path):
    kept_secret(tmp_path)
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InvalidInput, match="not private"):
        kept_secret(tmp_path)


@pytest.mark.behaviour("P12")
def test_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "elsewhere").write_text("0" * 64)
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="Delete"):
        kept_secret(tmp_path)


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("text", ["", "short", "with space " * 9])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(InvalidInput, match="holds no token"):
        kept_secret(tmp_path)


@pytest.mark.behaviour("P12")
def test_a_threads_token_is_only_good_for_it():
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


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize(
    ("listens", "dials"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("127.0.0.1", "127.0.0.2"),
    ],
)
def test_the_user_behind_a_tcp_connection_is_known(listens: str, dials: str):
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


@pytest.mark.behaviour("P12")
def test_the_user_behind_a_unix_socket_is_known():
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peers.peer_uid(Transport(one)) == os.geteuid()


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize(
    "peer", [("10.0.0.1", 80), ("fe80::1%eth0", 80), ("::ffff:10.0.0.1", 80), None, ("", 1)]
)
def test_nobody_elsewhere_is_a_peer(peer: tuple[str, int] | None):
    assert peers.tcp_peer_uid(peer, ("127.0.0.1", 80)) is None
