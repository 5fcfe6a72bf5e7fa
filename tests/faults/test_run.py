"""`python -m tests.faults.run`: which families are played."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from . import reports, run
from .families import FAMILIES
from .judge import Tally
from .reports import EARLIER, add_families

pytestmark = pytest.mark.faults


def test_every_family_is_played_where_none_is_named():
    assert run.named([]) == list(FAMILIES)


def test_families_by_name_and_by_first_word():
    assert [family.name for family in run.named(["7", "slow"])] == ["slow", "7"]  # and not 7b
    links = run.named(["link"])
    assert len(links) == 5
    assert all(family.name.startswith("link-") for family in links)


def test_a_family_that_is_none(capsys: pytest.CaptureFixture[str]):
    assert run.main(["5", "no-such"]) == 2
    said = capsys.readouterr()
    assert "no family 'no-such'" in said.err
    assert "link-daemons" in said.err
    assert said.out == ""


def test_the_seed_the_count_and_the_time_are_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    played: list[tuple[object, ...]] = []

    def play(*given: object) -> Tally:
        played.append(given)
        return Tally("nothing at all", "")

    monkeypatch.setattr(run, "FAMILIES", [FAMILIES[0]._replace(name="none", play=play, whole=(3,))])
    assert run.main(["none", "--seed", "7"]) == 0
    assert played == [(7, 3, "python -m tests.faults.run none --seed 7")]
    said = capsys.readouterr().out
    assert said.startswith("seed 7 (repeat with --seed 7)\nnothing at all")
    assert re.search(r" s\)\n0 faults, 0 lost, 0 doubled, 0 misordered in \d+ s\nseed 7\n", said)


def test_a_report_keeps_the_last_result_of_every_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They can be played one at a time, in any order; the report has the order of the table."""

    def play(seed: int, lost: int, reproduce: str) -> Tally:
        tally = Tally("nothing at all", reproduce)
        tally.faults, tally.lost = 2, lost
        return tally

    none = FAMILIES[0]._replace(play=play, whole=(0,))
    monkeypatch.setattr(run, "FAMILIES", [none._replace(name=name, title=f"of {name}") for name in "ab"])
    report = tmp_path / "report.json"
    report.write_text('{"soak": {"told": 1}, "families": {"gone": {"lost": 0}}}')
    for name, seed in (("b", 1), ("a", 2), ("b", 3)):
        assert run.main([name, "--seed", str(seed), "--report", str(report)]) == 0
    found = json.loads(report.read_text())
    assert found["soak"] == {"told": 1}
    assert list(found["families"]) == ["a", "b", "gone"]
    assert {name: each.get("seed") for name, each in found["families"].items()} == {
        "a": 2,
        "b": 3,
        "gone": None,
    }
    assert [each["earlier"] for each in list(found["families"].values())[:2]] == [[], []]
    last = found["families"]["b"]
    assert (last["title"], last["about"], last["faults"], last["lost"]) == ("of b", "Of b.", 2, 0)


def test_a_result_that_was_not_clean_is_kept_when_the_next_one_is(tmp_path: Path):
    report = tmp_path / "report.json"
    for seed, lost in ((1, 3), (2, 0), (3, 0)):
        add_families(report, {"a": {"faults": 9, "lost": lost, "seed": seed}}, ["a"])
    found = json.loads(report.read_text())["families"]["a"]
    assert (found["seed"], found["lost"]) == (3, 0)
    assert found["earlier"] == [{"faults": 9, "lost": 3, "seed": 1}]
    for seed in range(4, 20):
        add_families(report, {"a": {"faults": 9, "lost": 1, "seed": seed}}, ["a"])
    assert len(json.loads(report.read_text())["families"]["a"]["earlier"]) == EARLIER


def test_a_report_that_is_written_does_not_make_its_version_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for file in (report := tmp_path / reports.REPORT, code := tmp_path / "code.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1\n")
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    for words in (("init", "-q"), ("add", "."), (*me, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=LIMIT)
    monkeypatch.setattr(reports.strace, "ROOT", tmp_path)
    report.write_text("2\n")
    assert not reports.version().endswith("-dirty")
    code.write_text("2\n")
    assert reports.version().endswith("-dirty")
