"""A crash matrix: background work of agents, killed with -9 in mid-work, of Meantime and of its peers.

`make bench NAMES=crash_matrix` plays all of it and writes docs/reference/crash-matrix.json;
tools/write_crash_matrix.py makes the page of it. `ROWS="Mastra Strands"` plays only the rows with these words
in their names, and leaves the others as they are. `ROUNDS=5` plays more of each.
"""

from __future__ import annotations


async def run() -> None:
    from .matrix_run import play_all  # real agents and their models: the judge needs neither

    await play_all()
