"""Where the MCP SDK is: the connection to a server, and the wires it speaks on. Loaded at the first call."""
