"""The family of the wrap can fail: each planted bug is reported by the same judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.waiting import LIMIT

from . import wrap_hostility
from .wrap_judge import verdict
from .wrap_ledger import Noted
from .wrap_urls import UrlScene
from .wraps import THRESHOLD, Fault, played

pytestmark = pytest.mark.faults
SHORT = 5.0  # seconds: what a planted bug prevents is not waited for


def threshold(fault: Fault) -> float:
    """Calls that must not be tasks at the kill are not, however busy the machine is."""
    return LIMIT if fault.moment in ("running", "answering") else THRESHOLD


@pytest.mark.parametrize(
    ("plant", "fault", "kind", "says"),
    [
        ("crossed_ids", Fault("answering", "server"), "lost", "the answer to"),
        ("sent_again", Fault("running", "server"), "doubled", "was sent to a server 2 times"),
        ("told_twice", Fault("ended", "server"), "doubled", "was told again"),
        ("answered_twice", Fault("ended", "host"), "doubled", "an answer to nothing"),
        ("forgotten_ending", Fault("background", "daemon"), "lost", "never told"),
        ("vanished_host", Fault("running", "wrap"), "lost", "nobody was ever told"),
    ],
)
def test_a_planted_bug_is_found(plant: str, fault: Fault, kind: str, says: str, tmp_path: Path) -> None:
    found = played(tmp_path, 1, [fault], plant, SHORT, threshold=threshold(fault))
    assert [problem for problem in getattr(found, kind) if says in problem], found


@pytest.mark.parametrize(
    ("plant", "fault", "kind", "says"),
    [
        ("crossed_replies", Fault("answering", "server"), "lost", "the answer to"),
        ("answered_into_nothing", Fault("running", "host"), "lost", "nobody was ever told"),
        ("cut_is_a_cancel", Fault("running", "host"), "lost", "nobody was ever told"),
        ("sent_again", Fault("running", "server"), "doubled", "was sent to a server 2 times"),
        ("told_twice", Fault("ended", "server"), "doubled", "was told again"),
        ("forgotten_ending", Fault("background", "daemon"), "lost", "never told"),
    ],
)
def test_a_planted_bug_is_found_through_a_url(
    plant: str, fault: Fault, kind: str, says: str, tmp_path: Path
) -> None:
    found = played(tmp_path, 1, [fault], plant, SHORT, UrlScene, threshold(fault))
    assert [problem for problem in getattr(found, kind) if says in problem], found


@pytest.mark.parametrize(
    ("plant", "act", "says", "patience"),
    [
        ("crossed_ids", "crossed", "the answer to", LIMIT),
        ("dropped_notifications", "flood", "dry again", LIMIT),
        ("unanswered_calls", "crash", "is answered", SHORT),
        ("remembered_ids", "reused", "is answered", SHORT),
    ],
)
def test_a_planted_bug_is_found_by_hostility(
    plant: str, act: str, says: str, patience: float, tmp_path: Path
) -> None:
    found = wrap_hostility.played(tmp_path, [act], plant, patience)
    assert [problem for problem in found.lost if says in problem], found


CALL = [Noted("sent", "c1"), Noted("got", "c1")]
TASK = [*CALL, Noted("background", "c1", "t_1")]
COMPLETED = Noted("told", "1", 'id="t_1.1"/>\n"wrapped/slow-c1" completed.\nresult of c1')
AGAIN = COMPLETED._replace(note=f"You may have been told this before: it has the same id.\n{COMPLETED.note}")
CARRIED = [Noted("sent", "c2"), COMPLETED, Noted("result", "c2", "result of c2")]
LOST = Noted("told", "1", 'id="t_1.1"/>\n"wrapped/slow-c1" was lost.')


def test_the_judge_lets_an_honest_story_pass() -> None:
    assert verdict([*CALL, Noted("answering", "c1"), Noted("result", "c1", "result of c1")]).clean
    assert verdict([*TASK, Noted("answering", "c1"), COMPLETED]).clean
    assert verdict([*TASK, Noted("killed", "server"), LOST]).clean
    assert verdict([*TASK, Noted("answering", "c1"), COMPLETED, Noted("killed", "host"), AGAIN]).clean
    read_late = [CARRIED[0], Noted("killed", "daemon"), *CARRIED[1:]]
    assert verdict([*TASK, Noted("answering", "c1"), *read_late, AGAIN]).clean


@pytest.mark.parametrize(
    "story",
    [
        [*TASK, LOST],
        [*TASK, Noted("killed", "wrap"), LOST],
        [*TASK, Noted("ended", "c1"), Noted("killed", "daemon"), LOST],
        [*TASK, COMPLETED, COMPLETED],
        [*TASK, COMPLETED, Noted("killed", "daemon"), COMPLETED],
        [*TASK, Noted("killed", "daemon"), *CARRIED, AGAIN],
        [*TASK],
        [*CALL],
        [*CALL, Noted("error", "c1", "The server was lost.")],
        [*CALL, Noted("killed", "wrap"), Noted("gone", "wrap"), Noted("answering", "c1")],
        [*CALL, Noted("got", "c1"), Noted("result", "c1", "result of c1")],
        [*CALL, Noted("result", "c1", "result of c2")],
    ],
    ids=[
        "lost-without-a-kill",
        "lost-with-its-wrap",
        "lost-after-its-end",
        "told-twice",
        "told-again-without-a-word",
        "told-again-after-a-kill-before-both",
        "never-told",
        "never-answered",
        "an-error-without-a-kill",
        "forgotten-with-its-wrap",
        "sent-twice",
        "anothers-answer",
    ],
)
def test_the_judge_sees_what_is_wrong_in_a_story(story: list[Noted]) -> None:
    assert not verdict(story).clean
