"""Text for people at a terminal, shared by the CLI, the chat and the demo: safe text, tables, errors with
exit codes, and the screen with its prompt."""
