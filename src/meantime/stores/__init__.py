"""Durable memory: the memory store forgets, the SQLite store does not."""
