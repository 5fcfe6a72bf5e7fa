"""Every behaviour has a test, every test names behaviours that there are, and its name is a sentence."""

from __future__ import annotations

import re

import marked_tests
import pytest
import write_behaviours as tool
from marked_tests import Mark, MarkedTest

pytestmark = pytest.mark.docs

CODE = re.compile(r"test_(?:[A-Z]+\d*_|\d{3}_|psi_|llxprt_[A-Z])|[a-z0-9]_[A-Z]\d")


def test_every_behaviour_has_a_test_and_every_id_is_known():
    assert list(tool.problems()) == []


def test_the_pages_are_fresh():
    stale = "stale: run `python tools/write_behaviours.py`"
    assert tool.BEHAVIOURS.read_text("utf-8") == tool.write_behaviours(), stale
    page = tool.PROMISES.read_text("utf-8")
    assert page == tool.write_promises(page), stale


def test_no_test_has_a_code_in_its_name():
    coded = [f"{test.path}::{test.name}" for test in marked_tests.tests() if CODE.search(test.name)]
    assert coded == [], "an id is a marker: @pytest.mark.behaviour(…); the name is a sentence"


@pytest.mark.parametrize(
    "name", ["test_P4_a_turn", "test_psi_B1_it", "test_000_it", "test_it_N11_told", "test_L_it"]
)
def test_a_code_in_a_name_is_noticed(name: str):
    assert CODE.search(name)


def test_a_behaviour_without_a_test_is_noticed(monkeypatch: pytest.MonkeyPatch):
    known = tool.behaviours()
    monkeypatch.setattr(tool, "behaviours", lambda: {**known, "F99": "Nobody has thought of this."})
    assert list(tool.problems()) == ["F99: no test carries it"]


def test_an_unknown_id_is_noticed(monkeypatch: pytest.MonkeyPatch):
    proved = tool.proofs()
    stray = MarkedTest("tests/test_a.py", "test_b", (Mark("behaviour", ("Z1",)),))
    monkeypatch.setattr(tool, "proofs", lambda: {**proved, "Z1": [stray]})
    assert list(tool.problems()) == ["tests/test_a.py::test_b: Z1 is not a behaviour"]


def test_a_missing_behaviour_that_is_made_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tool, "missing", lambda: {**tool.sections()["missing"], "P1": "It is not made."})
    (said,) = tool.problems()
    assert said.startswith("P1: is said to be missing, but ")


def test_a_marker_that_nobody_reads_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        'import pytest\n\n\n@pytest.mark.behaviour("F1")\nclass TestA:\n    def test_b(self): ...\n'
    )
    monkeypatch.setattr(marked_tests, "ROOT", tmp_path)
    assert list(marked_tests.misplaced()) == ["tests/test_a.py: 1 markers do not stand above a test function"]


def test_every_name_of_a_test_is_a_sentence():
    """One or two words name a subject, and not what is true of it."""
    short = [f"{test.path}::{test.name}" for test in marked_tests.tests() if test.name.count("_") < 3]
    assert short == []
