"""Runs agents: one driver for every host of sessions."""
