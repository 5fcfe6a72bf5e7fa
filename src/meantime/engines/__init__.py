"""Engines decide where runs execute."""
