"""`meantime mcp --wrap`: a host on one side, any MCP server on the other (decision 61)."""
