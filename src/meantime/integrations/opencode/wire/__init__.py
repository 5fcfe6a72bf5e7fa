"""The HTTP client of an OpenCode server. Needs the extra `opencode`, so it is loaded when it is used."""
