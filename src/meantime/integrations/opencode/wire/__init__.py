"""How an OpenCode server is spoken to. Needs the extra `opencode`, so it is loaded when it is used."""
