"""Agent Protocol on the HTTP server, as LangGraph's SDK and deepagents speak it. Every configured agent is an
assistant, a thread is a conversation with one, and a run is a run of its task."""
