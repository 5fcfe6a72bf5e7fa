"""Where one person's Meantime lives, and whose folder that may be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from meantime.daemon.daemon_autostart import NoDaemon, ensure
from meantime.daemon.home import BadHome, Home, home


def test_named_by_the_environment() -> None:
    found = home({"MEANTIME_HOME": "/srv/m", "MEANTIME_CONFIG": "/etc/m.toml", "HOME": "/home/ada"})
    assert found == Home(Path("/srv/m"), Path("/etc/m.toml"))
    names = {
        found.ledger: "ledger.db",
        found.http_socket: "http.sock",
        found.link_socket: "link.sock",
        found.wrap_socket: "wrap.sock",
        found.log: "daemon.log",
        found.discovery: "server.json",
        found.token: "token",
    }
    assert names == {Path("/srv/m", name): name for name in names.values()}


def test_the_standard_folders_come_next() -> None:
    environ = {"XDG_STATE_HOME": "/x/state", "XDG_CONFIG_HOME": "/x/config", "HOME": "/home/ada"}
    assert home(environ) == Home(Path("/x/state/meantime"), Path("/x/config/meantime/config.toml"))


@pytest.mark.parametrize("said", ["", "relative/folder"])
def test_then_those_of_the_user(said: str) -> None:
    environ = {"XDG_STATE_HOME": said, "XDG_CONFIG_HOME": said, "HOME": "/home/ada"}
    expected = Home(Path("/home/ada/.local/state/meantime"), Path("/home/ada/.config/meantime/config.toml"))
    assert home(environ) == expected


@pytest.mark.parametrize("name", ["MEANTIME_HOME", "MEANTIME_CONFIG"])
def test_a_relative_path_is_refused(name: str) -> None:
    with pytest.raises(BadHome, match=f"{name}='work' is not a whole path") as caught:
        home({name: "work", "HOME": "/home/ada"})
    assert str(Path.cwd() / "work") in caught.value.hint


def test_it_does_not_change() -> None:
    with pytest.raises(AttributeError):
        home({"HOME": "/h"}).folder = Path("/other")  # pyright: ignore[reportAttributeAccessIssue]


def test_a_new_one_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = Home(tmp_path / "deep" / "home", tmp_path / "config.toml")
        made.make()
        made.make()
    finally:
        os.umask(before)
    assert made.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o704])
def test_one_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    found = Home(tmp_path / "home", tmp_path / "config.toml")
    found.folder.mkdir()
    found.folder.chmod(mode)
    with pytest.raises(BadHome, match=f"{mode:04o}") as caught:
        found.make()
    assert caught.value.hint == f"Close it with: chmod 700 {found.folder}"
    assert found.folder.stat().st_mode & 0o777 == mode
    with pytest.raises(NoDaemon, match="Other users may enter"):
        ensure(found)
    assert list(found.folder.iterdir()) == []


def test_a_file_is_refused(tmp_path: Path) -> None:
    found = Home(tmp_path / "home", tmp_path / "config.toml")
    found.folder.write_text("")
    with pytest.raises(BadHome, match="is not a folder"):
        found.make()
    below = Home(found.folder / "below", tmp_path / "config.toml")
    with pytest.raises(BadHome, match="cannot be used: Not a directory"):
        below.make()


def test_somebody_elses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Home(tmp_path / "home", tmp_path / "config.toml")
    found.make()
    monkeypatch.setattr(os, "getuid", lambda: found.folder.stat().st_uid + 1)
    with pytest.raises(BadHome, match="belongs to user"):
        found.check()


@pytest.mark.linux_only("a home with a long path is refused from the beginning elsewhere")
def test_a_path_that_no_socket_can_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no short name for an open folder."""
    Home(tmp_path / ("x" * 100), tmp_path / "config.toml").make()
    monkeypatch.setattr("meantime.system.platform.names_long_sockets", lambda: False)
    with pytest.raises(BadHome, match="too long a path"):
        Home(tmp_path / ("x" * 100), tmp_path / "config.toml").make()


@pytest.mark.linux_only("the refusals of tests/posix_mode load more into each process")
def test_it_loads_nothing_that_is_not_needed() -> None:
    heavy = ("asyncio", "click", "dataclasses", "http.client", "inspect", "json", "msgspec", "subprocess")
    code = f"import sys, meantime.daemon.daemon_autostart; print(sorted(set({heavy}) & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "[]\n"
