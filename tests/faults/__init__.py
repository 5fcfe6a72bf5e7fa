"""Kills, cuts and floods. `python -m tests.faults.run` runs all of them; pytest runs a few of each family."""
