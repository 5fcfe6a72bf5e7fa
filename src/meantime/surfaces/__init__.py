"""Doors: ways into a runtime from outside. They see ports/tasks.py and the kernel, never the runtime."""
