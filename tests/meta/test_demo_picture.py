"""docs/pictures/demo.svg shows what the demo prints today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import record_demo as tool

from meantime.app.demo import demo_texts
from meantime.app.demo.demo_work import pieces
from meantime.app.demo.subagent import Subagent

pytestmark = pytest.mark.docs

STALE = "stale: run `python tools/record_demo.py`"
SUMMARY = "ID STATUS TIME TOLD TASK"
# What differs from run to run: ids, numbers, times, and the name of the folder.
MOVING = [(re.compile(r"meantime-demo-\w+"), "FOLDER"), (re.compile(r"\b[0-9a-z]{8}\b"), "ID")]
NUMBER = re.compile(r"\d[\d.,]*")


def shape(text: str) -> str:
    for moving, instead in MOVING:
        text = moving.sub(instead, text)
    return " ".join(NUMBER.sub("N", text).split())


@pytest.fixture(scope="module")
def picture() -> str:
    return shape(" ".join(tool.text_of(tool.PICTURE.read_text("utf-8"))))


def missing(lines: list[str], picture: str) -> list[str]:
    return [line for line in lines if shape(line) not in picture]


def test_the_picture_has_the_texts_of_the_demo(picture: str, tmp_path: Path):
    said = [*demo_texts.banner("http://127.0.0.1:5165", "/tmp/meantime-demo-x", keep=False), demo_texts.ASK]
    titles = [piece.name for piece in pieces(tmp_path, Subagent.__new__(Subagent), 8)]
    assert missing([*said, demo_texts.HANDED_OFF, demo_texts.MEANWHILE, *titles], picture) == [], STALE


def test_the_picture_has_what_a_real_run_prints(picture: str, tmp_path: Path):
    """Without the table of `tasks`, which depends on the moment, and the lines for a program of one's own."""
    command = [sys.executable, "-m", "meantime.app.demo", "--headless"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    shown = done.stdout.partition(demo_texts.PLUG_IN)[0].splitlines()
    lines = [line for line in shown if not line.startswith(("  you > tasks", "agent > ID", " " * 8))]
    assert sum(" ".join(line.split()) == SUMMARY for line in lines) == 1
    assert missing(lines, picture) == [], STALE


def test_a_line_that_the_picture_does_not_have_is_noticed(picture: str):
    assert missing(["agent > I am new here."], picture)


def test_a_row_of_the_picture_is_a_row_of_the_terminal():
    screen = tool.pyte.Screen(tool.COLUMNS, tool.LINES)
    tool.pyte.Stream(screen).feed(
        "\x1b[1magent\x1b[0m >  a <b> \x1b[31m✗\x1b[0m\r\n\r\nIn an agent of your own:"
    )
    drawn = tool.draw(tool.rows(screen))
    assert tool.text_of(drawn) == ["$ make demo", "agent > a <b> ✗"]
    assert tool.COLOURS["red"] in drawn
