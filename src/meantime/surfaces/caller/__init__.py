"""The caller of a command or a hook: the conversation, agent session and executable that it belongs to."""
