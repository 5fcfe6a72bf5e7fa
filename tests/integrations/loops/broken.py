"""A module that cannot be imported."""

raise RuntimeError("on purpose")
