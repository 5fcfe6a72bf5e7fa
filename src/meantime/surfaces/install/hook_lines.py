"""The command lines of hooks, as agents get them. An agent runs such a line at every tool call, and there is
seldom something to tell: so the shell looks for the quiet file of the conversation, and Python starts only
where there is none (surfaces/hooks/quiet_files.py)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

GUARDED = ("user-prompt", "post-tool", "stop")  # the others do more than to tell
# As meantime/daemon/home.py finds it. Where that comes to another folder, there is no such file here, and
# Python starts. `-` and not `:-`: Gemini CLI replaces the latter by itself when it reads its settings, and
# wrongly.
HOME = 'h="${MEANTIME_HOME-${XDG_STATE_HOME-$HOME/.local/state}/meantime}"'
# A file, not anything: a thread may be called "..".
GUARD = '[ -f "$h/quiet/${{MEANTIME_THREAD-mcp-{session}}}" ] || {hook}'
SESSIONS = {"claude-code": "${CLAUDE_CODE_SESSION_ID-}", "gemini": "${GEMINI_SESSION_ID-}"}
# Codex gives its hooks no variable: the id is at the start of what they read. What was read is handed on.
HEAD = 's=$(dd bs=256 count=1 2>/dev/null); t=${s#*\\"session_id\\"*:*\\"}'
HAND_ON = '{ export MEANTIME_HOOK_HEAD="$s"; exec %s; }'


def line(command: Sequence[str], moment: str, host: str) -> str:
    """`command` is what starts `meantime`."""
    hook = shlex.join([*_hook(command), moment, "--host", host])
    if moment not in GUARDED or host == "cursor":  # which has one in a turn, and names no session beforehand
        return hook
    if host in SESSIONS:
        return f"{HOME}; {GUARD.format(session=SESSIONS[host], hook=f'exec {hook}')}"
    guard = GUARD.format(session='${t%%\\"*}', hook=HAND_ON % hook)
    # In a shell of its own: Codex uses that of its user, which may be none that understands this.
    return f"sh -c {shlex.quote(f'{HOME}; {HEAD}; {guard}')}"


def _hook(command: Sequence[str]) -> list[str]:
    """`meantime hook`, or the script beside it, which starts sooner."""
    script = f"{command[0]}-hook"
    is_there = len(command) == 1 and os.path.isabs(script) and os.access(script, os.X_OK)
    return [script] if is_there else [*command, "hook"]
