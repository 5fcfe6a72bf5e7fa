"""Files for service managers: what they say, whatever the paths look like."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.app.service_managers import problem_with, service_manager
from meantime.app.service_units import Service, launchd_plist, search_path, systemd_unit

ODD = "/srv/an odd % \"$HOME\" 'path' \\ ü"


def service(user: str | None = None) -> Service:
    environ = {"MEANTIME_HOME": ODD, "PATH": "/usr/bin:/bin"}
    return Service(program=["/bin/sh", "-c", ODD], environ=environ, user=user)


def test_a_unit_quotes_what_systemd_would_expand():
    unit = systemd_unit(service())
    assert 'Environment="MEANTIME_HOME=/srv/an odd %% \\"$HOME\\" \'path\' \\\\ ü"' in unit
    assert '"/bin/sh" "-c" "/srv/an odd %% \\"$$HOME\\" \'path\' \\\\ ü"' in unit


@pytest.mark.parametrize("user", [None, "daemon"])
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, user: str | None):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / "meantime.service"
    path.write_text(systemd_unit(service(user)))
    scope = ["--user"] if user is None else []
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", *scope, "verify", str(path)],
        env=environ, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_service_of_the_system_may_not_change_the_system():
    own, shared = systemd_unit(service()), systemd_unit(service("daemon"))
    for line in ("User=daemon", "NoNewPrivileges=yes", "ProtectSystem=full", "WantedBy=multi-user.target"):
        assert line in shared.splitlines()
        assert line not in own.splitlines()


def test_a_property_list_has_what_launchd_knows():
    """The keys are those of launchd.plist(5). It was read by no launchd: none runs here."""
    said = plistlib.loads(launchd_plist(service("daemon")).encode())
    assert said["ProgramArguments"] == ["/bin/sh", "-c", ODD]
    assert said["EnvironmentVariables"]["MEANTIME_HOME"] == ODD
    assert said["KeepAlive"] == {"SuccessfulExit": False}
    assert said["AbandonProcessGroup"] is True
    assert set(said) == {
        "Label", "ProgramArguments", "EnvironmentVariables", "RunAtLoad", "KeepAlive", "ThrottleInterval",
        "AbandonProcessGroup", "ExitTimeOut", "SoftResourceLimits", "UserName",
    }  # fmt: skip


def test_the_path_of_a_service_has_each_folder_once():
    assert search_path("/usr/bin:/opt/x/bin:/usr/bin/::/bin:/opt/x/bin") == "/usr/bin:/opt/x/bin:/bin"


def test_the_path_of_another_users_service_has_no_folder_of_a_home_that_it_cannot_enter():
    path = "/home/you/.local/bin:/usr/bin:/home/younger/bin:/home/you"
    assert search_path(path, "/home/you/") == "/usr/bin:/home/younger/bin"
    assert search_path("/usr/bin", "/") == "/usr/bin", "a home that is the root hides nothing"


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("user", [None, "daemon"])
def test_each_manager_knows_its_own_file(platform: str, user: str | None):
    manager = service_manager(platform, service(user), {"HOME": "/home/you"})
    assert manager.is_ours(manager.text)
    assert not manager.is_ours("[Service]\nExecStart=/bin/true\n")
    assert manager.path.is_relative_to("/home/you") == (user is None)
    assert manager.user_in(manager.text) == user


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("true",), None),
        (("sh", "-c", "echo no medium; exit 3"), "no medium"),
        (("false",), "It ended with 1."),
        (("no-such-program",), "no-such-program is not installed here."),
    ],
)
def test_a_command_of_a_manager_that_fails_says_why(command: tuple[str, ...], said: str | None):
    assert problem_with(command) == said
