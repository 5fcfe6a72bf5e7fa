"""The flame graph: stacks are weighted with CPU time, and each frame is as wide as its part."""

from __future__ import annotations

import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest
from benchmarks.flame import Sampler, label, pruned
from flame_graph import EDGE, boxes, flame_graph, tree_of
from line_chart import Axis, Curve, line_chart
from tests.waiting import LIMIT

pytestmark = pytest.mark.docs

SVG = "{http://www.w3.org/2000/svg}"


def busy(seconds: float) -> None:
    over = time.thread_time() + seconds
    while time.thread_time() < over:
        pass


def test_a_thread_that_waits_weighs_nothing() -> None:
    sampler, gate = Sampler(), threading.Event()
    waiting = threading.Thread(target=gate.wait, name="waiting")
    waiting.start()
    sampler.start()
    busy(0.2)
    sampler.stop()
    gate.set()
    waiting.join(LIMIT)
    seen = Counter[str]()
    for stack, seconds in sampler.stacks.items():
        seen[stack[0]] += seconds  # type: ignore[assignment]
    assert seen["the event loop"] > 0.05
    assert seen["waiting"] < 0.1 * seen["the event loop"]


def test_small_frames_are_counted_with_their_caller() -> None:
    stacks = Counter({("a", "big"): 90, ("a", "small", "smaller"): 4, ("a", "small"): 6})
    assert pruned(stacks, 0.05) == {("a", "big"): 90, ("a", "small"): 10}


@pytest.mark.parametrize(
    ("file", "function", "said"),
    [
        ("/x/src/meantime/runtime/run.py", "Run.go", "meantime.runtime.run:Run.go"),
        ("/usr/lib/python3.11/asyncio/events.py", "Handle._run", "asyncio.events:Handle._run"),
        ("/usr/lib/python3.11/json/encoder.py", "encode", "encoder:encode"),
        ("/x/benchmarks/end_to_end.py", "once", ""),
        ("<frozen runpy>", "_run_code", ""),
    ],
)
def test_a_frame_is_named_by_module_and_function(file: str, function: str, said: str) -> None:
    assert label(file, function) == said


def test_a_frame_is_as_wide_as_its_part_and_stands_under_its_caller() -> None:
    stacks = [(("loop", "a"), 30.0), (("loop", "b"), 10.0), (("writer",), 60.0)]
    found = {box.name: box for box in boxes(tree_of(stacks), EDGE, 1.0)}
    assert {name: (box.depth, box.left - EDGE, box.width) for name, box in found.items()} == {
        "all": (0, 0, 100), "writer": (1, 0, 60), "loop": (1, 60, 40), "a": (2, 60, 30), "b": (2, 90, 10),
    }  # fmt: skip
    drawn = ElementTree.fromstring(flame_graph("A <title>", stacks, "µs"))
    assert [text.text for text in drawn.iter(f"{SVG}title")][1] == "writer: 60.0 µs, 60.0%"


def test_curves_are_told_apart_without_colour_and_have_their_names() -> None:
    across, up = Axis("size", [(1, "1"), (100, "100")], True), Axis("time", [(0, "0"), (10, "10 µs")])
    curves = [Curve("one", [(1, 0), (10, 5), (100, 10)]), Curve("two", [(1, 1), (100, 10)])]
    drawn = ElementTree.fromstring(line_chart("Growth", across, up, curves))
    paths = [path for path in drawn.iter(f"{SVG}path") if path.attrib.get("class") == "curve"]
    assert len({path.attrib["stroke-dasharray"] for path in paths}) == 2
    first = [tuple(map(float, point.split())) for point in paths[0].attrib["d"][1:].split("L")]
    (left, low), (middle, half), (right, high) = first
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert half == pytest.approx((low + high) / 2, abs=0.1)
    places = {text.text: float(text.attrib["y"]) for text in drawn.iter(f"{SVG}text")}
    assert abs(places["one"] - places["two"]) >= 15
