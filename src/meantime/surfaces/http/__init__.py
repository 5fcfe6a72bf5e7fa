"""Seed 001's HTTP API and event stream, behind a gate. Needs the `server` extra."""
