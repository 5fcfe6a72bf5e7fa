"""A2A 1.0 over JSON-RPC, on the HTTP server. Every configured agent has an address and a card; a context is a
thread, and a task of A2A is one run."""
