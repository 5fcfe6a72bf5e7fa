"""`meantime service`, with a program in place of systemctl that writes down how it was called.

tests/daemon/test_systemd.py does the same with a real systemd.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .person import Person

pytestmark = pytest.mark.processes

CALLS = "calls"


@pytest.fixture
def systemctl(loner: Person) -> Path:
    folder = loner.folder / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    active = loner.folder / "active"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {loner.folder}/{CALLS}\n'
        f'case "$*" in *is-active*) test -e {active};;\n'
        f"*enable*) touch {active};; *disable*) rm -f {active};; esac\n"
    )
    program.chmod(0o700)
    loner.environ["PATH"] = f"{folder}:{loner.environ['PATH']}"
    loner.environ["HOME"] = str(loner.folder)
    loner.environ.pop("XDG_CONFIG_HOME", None)
    return loner.folder / ".config/systemd/user/meantime.service"


def calls(person: Person) -> list[str]:
    return (person.folder / CALLS).read_text().splitlines() if (person.folder / CALLS).exists() else []


def test_a_service_is_shown_first_installed_and_removed_to_the_letter(loner: Person, systemctl: Path):
    shown = loner("service", "install", "--print")
    assert "Type=notify" in shown.out
    assert "$ systemctl --user enable --now meantime.service" in shown.out
    assert not systemctl.exists()
    assert loner("service", "status").code == 3
    refused = loner("service", "install")
    assert (refused.code, refused.err) == (
        2,
        "meantime: Nothing was changed.\n  Say --yes to make this change.\n",
    )
    done = loner("service", "install", "--yes")
    assert done.code == 0, done
    assert f'Environment="MEANTIME_HOME={loner.home}"' in systemctl.read_text()
    assert loner.json("service", "status")["active"] is True
    assert "nothing to change" in loner("service", "install", "--yes").out
    assert loner("service", "uninstall", "--yes").code == 0
    assert not systemctl.exists()
    changes = [call for call in calls(loner) if "is-active" not in call]
    assert changes == [
        "--user daemon-reload",
        "--user enable --now meantime.service",
        "--user disable --now meantime.service",
        "--user daemon-reload",
    ]


def test_a_unit_of_somebody_else_is_not_touched(loner: Person, systemctl: Path):
    systemctl.parent.mkdir(parents=True)
    systemctl.write_text("[Service]\nExecStart=/bin/true\n")
    for action in ("install", "uninstall"):
        done = loner("service", action, "--yes")
        assert done.code == 1
        assert "was not written by Meantime" in done.err
    assert systemctl.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_a_unit_that_was_edited_is_shown_to_differ(loner: Person, systemctl: Path):
    assert loner("service", "install", "--yes").code == 0
    systemctl.write_text(systemctl.read_text().replace("RestartSec=1", "RestartSec=9"))
    assert "It differs from" in loner("service", "status").out
    done = loner("service", "install", "--yes")
    assert "-RestartSec=9\n+RestartSec=1\n" in done.out


def test_a_daemon_that_runs_already_is_stopped_first(loner: Person, systemctl: Path):
    assert loner("up").code == 0
    done = loner("service", "install", "--yes")
    assert done.code == 1
    assert "meantime down --keep" in done.err
    assert not systemctl.exists()


def test_a_service_manager_that_cannot_be_reached_is_named(loner: Person, systemctl: Path):
    (loner.folder / "bin/systemctl").write_text("#!/bin/sh\necho no bus here; exit 1\n")
    done = loner("service", "install", "--yes")
    assert done.code == 1
    assert "`systemctl --user daemon-reload` failed: no bus here" in done.err
    removed = loner("service", "uninstall", "--yes")
    assert (removed.code, "The service was not stopped: no bus here" in removed.err) == (0, True)
    assert not systemctl.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--system"], "A service of the system needs a user."),
        (["--run-as", "daemon"], "--run-as is for --system."),
        (["--system", "--run-as", "no such user"], "There is no user 'no such user'."),
    ],
)
def test_bad_options_are_refused(loner: Person, options: list[str], said: str):
    done = loner("service", "install", "--print", *options)
    assert done.code == 2
    assert said in done.err
