"""The agents of a daemon, as people see them: named, looked at, and read again only with a new start."""

from __future__ import annotations

import pytest

from .conftest import Place

pytestmark = pytest.mark.processes

EXPLORE = '[http]\nport = 0\n[agents.explore]\nrunner = "opencode"\nurl = "http://localhost:1"\n'
CHANGED = "The configuration has changed since the daemon started: meantime down && meantime up"


def test_an_agent_that_was_named_after_the_daemon_had_started(place: Place) -> None:
    place.up()
    said = place.cli("run", "--agent", "explore", "look").stderr
    assert "There is no runner for 'agent' work here." in said
    assert CHANGED not in said
    place.configure(EXPLORE)
    said = place.cli("run", "--agent", "explore", "look").stderr
    assert CHANGED in said
    place.down()
    place.up()
    said = place.cli("run", "--agent", "review", "look").stderr
    assert "There is no agent 'review' here.\n  There are: explore." in said
    place.configure(EXPLORE.replace("explore", "review"))
    assert CHANGED in place.cli("run", "--agent", "review", "look").stderr


def test_people_see_which_agents_there_are(place: Place) -> None:
    place.configure(f'{EXPLORE}[agents.review]\nrunner = "opencode"\nurl = "http://localhost:2"\n')
    place.up()
    status = place.cli("status").stdout
    assert [line.split(None, 1)[1] for line in status.splitlines() if line.startswith("agents ")] == [
        "explore, review"
    ]
    doctor = place.cli("doctor").stdout
    assert "explore: opencode, http://localhost:1" in doctor
    assert "review: opencode, http://localhost:2" in doctor
    place.down()
    place.configure("[http]\nport = 0\n")
    place.up()
    assert "\nagents " not in place.cli("status").stdout
