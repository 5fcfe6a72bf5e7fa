"""Processes and machines as the system knows them: boot, start time, device, command line."""
