"""Sections of the page of the benchmarks are there when their run is recorded, with its figures."""

from __future__ import annotations

import pytest
from write_benchmarks import disk_section, memory_section

pytestmark = pytest.mark.docs

MEMORY = [{"name": "running function", "bytes": 2_560.0}, {"name": "idle daemon", "bytes": 45_700_000.0}]
DISK = [
    {"name": "task", "bytes": 820.4},
    {"name": "nothing else", "us": 400.0, "p99_us": 1_000.0, "longest_us": 1_500.0},
    {"name": "retention", "us": 500.0, "p99_us": 1_200.0, "longest_us": 2_500.0},
]


def test_a_run_without_memory_and_disk_has_no_section_of_them() -> None:
    assert memory_section({}) == disk_section({}) == ""


def test_memory_is_shown_in_kilobytes_and_megabytes() -> None:
    section = memory_section({"memory": {"rows": MEMORY}})
    assert "| running function | 2.5 KB |\n| idle daemon | 45.7 MB |\n" in section


def test_pauses_are_shown_beside_the_p99_of_commits_without_them() -> None:
    section = disk_section({"disk": {"rows": DISK}})
    assert "| task | 820 |\n" in section
    assert "| nothing else | 400 µs | 1,000 µs | 1,500 µs | 1.5× |\n" in section
    assert "| retention | 500 µs | 1,200 µs | 2,500 µs | 2.5× |\n" in section
