"""The code of docs/guides/google-adk.md runs, and prints what the page says."""

from __future__ import annotations

from guide_blocks import check_guide


def test_the_code_of_the_guide_prints_what_it_says():
    check_guide("google-adk.md")
