"""Processes, machines, files and streams as the system knows them. Everybody may import it."""
