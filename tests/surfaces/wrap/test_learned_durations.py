"""Tools that usually take longer than their threshold, where somebody has chosen that this is learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import until

from daemon.conftest import Place, place_in
from meantime.kernel.estimates import KEPT, Key, Usual
from meantime.surfaces.wrap.learned_durations import ENOUGH, LearnedDurations

from .conftest import NEVER_SOON, SOON, Peer, Wrapped, hosts_of, task_of, texts

pytestmark = pytest.mark.breadth

CONFIG = f"""[http]
port = 0
[mcp]
wrap_threshold = {NEVER_SOON}
wrap_thresholds = {{ "scripted/gate" = {SOON}, "scripted/hang" = {SOON} }}
wrap_learn = ["scripted/gate", "scripted/echo"]
"""


def nothing(key: Key) -> Usual | None:
    return None


def learned(*seconds: float) -> float | None:
    durations = LearnedDurations(nothing)
    for one in seconds:
        durations.note("files/index", one)
    assert durations.usual("files/search") is None, "another tool"
    return durations.usual("files/index")


def test_nothing_is_concluded_from_a_few_calls():
    assert learned(*[30.0] * (ENOUGH - 1)) is None
    assert learned(*[30.0] * ENOUGH) == 30.0


def test_one_call_that_was_stuck_changes_nothing():
    assert learned(1.0, 1.0, 900.0) == 1.0


def test_a_tool_that_has_become_quick_is_quick_again():
    assert learned(*[30.0] * KEPT, *[0.1] * (KEPT // 2 + 1)) == 0.1


def test_the_ledger_counts_until_enough_calls_were_seen():
    durations = LearnedDurations(lambda key: Usual(60.0, 5) if key == ("tool", "files/index") else None)
    assert durations.usual("files/index") == 60.0
    for _ in range(ENOUGH):
        durations.note("files/index", 0.1)
    assert durations.usual("files/index") == 0.1


@pytest.fixture(scope="module")
def learning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_in(tmp_path_factory.mktemp("learning")) as made:
        made.configure(CONFIG)
        made.up()
        yield made


@pytest.fixture
def wrapped(learning: Place, peer: Peer, thread: str) -> Iterator[Wrapped]:
    with hosts_of(learning, peer, thread) as made:
        yield made


def test_a_tool_that_is_usually_slow_goes_to_the_background_at_once(
    wrapped: Wrapped, peer: Peer, learning: Place
):
    host = wrapped()
    peer.folder.mkdir(exist_ok=True)
    for at in range(ENOUGH):
        answer = host.call("gate", gate=f"gate-{at}")
        assert f"This call takes longer than {SOON} s and continues" in texts(answer)[0]
        Path(peer.folder, f"gate-{at}").touch()
        ended(learning, task_of(answer))
        host.call("echo", text="quick")
    at_once = host.call("gate", gate="last")
    assert "This call is of a tool that usually takes about " in texts(at_once)[0]
    assert texts(host.call("echo", text="quick"))[0] == "quick", "it stays in the foreground"
    Path(peer.folder, "last").touch()
    assert ended(learning, task_of(at_once))["result"] == "through"


def ended(place: Place, task: str) -> dict[str, str]:
    """The task, once its ending is recorded."""
    return until(
        lambda: (found := place.ask("GET", f"/v1/tasks/{task}"))["completedAt"] and found,
        f"{task} has ended",
    )
