"""Interfaces of a runtime for others. They see ports/tasks.py and the kernel, never the runtime."""
