"""Runners perform work: one kind each."""
