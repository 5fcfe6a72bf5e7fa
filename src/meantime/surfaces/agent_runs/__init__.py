"""Conversations with agents in the terms of other protocols, which have threads and runs."""
