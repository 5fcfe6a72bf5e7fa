"""The page of the benchmarks, and its pictures, are those of the recorded run."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
from bar_chart import Bar, bar_chart
from write_benchmarks import pages

pytestmark = pytest.mark.docs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_it_is_as_the_recorded_run_says(path: Path) -> None:
    assert path.read_text("utf-8") == pages()[path], "run python tools/write_benchmarks.py"


def test_a_bar_is_as_long_as_its_figure_and_is_read_without_colour() -> None:
    chart = bar_chart("A <title>", [Bar("ours", 1.0, "1 µs", True), Bar("theirs & others", 4.0, "4 µs")])
    drawn = ElementTree.fromstring(chart)
    ours, theirs = drawn.iter(f"{SVG}rect")
    assert float(theirs.attrib["width"]) == pytest.approx(4 * float(ours.attrib["width"]))
    assert (ours.attrib["class"], theirs.attrib["class"]) == ("bar ours", "bar")
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert texts == ["A <title>", "ours", "1 µs", "theirs & others", "4 µs"]
    assert "prefers-color-scheme: dark" in chart


def test_bars_of_a_logarithmic_chart_grow_by_the_same_for_each_power_of_ten() -> None:
    values = (100.0, 1_000.0, 10_000.0, 100_000.0)
    chart = bar_chart("CPU", [Bar(str(value), value, str(value)) for value in values], logarithmic=True)
    widths = [float(bar.attrib["width"]) for bar in ElementTree.fromstring(chart).iter(f"{SVG}rect")]
    steps = [longer - shorter for shorter, longer in pairwise(widths)]
    assert steps == pytest.approx([widths[1]] * 3, abs=1.2)  # the shortest has a pixel
