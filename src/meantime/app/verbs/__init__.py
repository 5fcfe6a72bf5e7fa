"""Verbs of the command line that need the whole product."""
