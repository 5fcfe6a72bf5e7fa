"""MCP tools of other servers as background work. Nothing here loads the MCP SDK before its first use."""
