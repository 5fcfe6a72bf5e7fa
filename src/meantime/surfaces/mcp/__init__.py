"""The MCP server: any coding agent hands off work, and is told. Only what is in here knows the SDK."""
