"""Hooks: a coding agent runs `meantime hook …` at its own boundaries, and is told there."""
