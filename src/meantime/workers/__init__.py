"""Runs that workers on other machines perform: the protocol, the owner's side and the worker's side."""
