"""A thread as its agent uses it: turns, handles, logs, the delivery loop and pushed notices."""
