"""The HTTP client of the daemon: quick to load, and patient when the daemon goes away and comes back."""
