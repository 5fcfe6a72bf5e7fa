"""The common part of the suites."""
