"""The moments at which hosts run hooks, by our names. The hook itself imports this: it needs nothing else."""

SESSION_START, PROMPT, POST_TOOL, STOP, WAIT = "session-start", "user-prompt", "post-tool", "stop", "wait"
PRE_TOOL = "pre-tool"  # before a call of our own MCP tools: nobody is told here, but whose call it is
MOMENTS = (SESSION_START, PROMPT, PRE_TOOL, POST_TOOL, STOP, WAIT)
CLAUDE_CODE, CODEX, GEMINI, GOOSE, CURSOR = "claude-code", "codex", "gemini", "goose", "cursor"
AGENTS = (CLAUDE_CODE, CODEX, GEMINI, GOOSE, CURSOR)
EVENTS = {  # how Claude Code and Codex call them, and how Gemini CLI does
    SESSION_START: ("SessionStart", "SessionStart"),
    PROMPT: ("UserPromptSubmit", "BeforeAgent"),
    PRE_TOOL: ("PreToolUse", "BeforeTool"),
    POST_TOOL: ("PostToolUse", "AfterTool"),
    STOP: ("Stop", "AfterAgent"),
}
# Gemini CLI leaves out a prompt that begins like this when a session is resumed (`isIgnoredUserContent`):
# slash commands, help, and what it adds by itself.
LEFT_OUT = ("/", "?", "<session_context>", "<hook_context>")


def is_kept(prompt: str) -> bool:
    """Whether Gemini CLI still has a message that begins like this after it resumed the session."""
    begin = prompt.strip()
    return bool(begin) and not begin.startswith(LEFT_OUT)
