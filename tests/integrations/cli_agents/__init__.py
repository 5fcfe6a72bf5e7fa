"""Agents on the command line: a scripted one for what real ones cannot be made to do, and the real ones."""
