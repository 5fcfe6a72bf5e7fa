"""Which tools a Claude agent has as a task: those of its options, or those that its settings name."""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookContext, HookInput, HookJSONOutput, HookMatcher


def chosen_tools(options: ClaudeAgentOptions, tools: tuple[str, ...] | None) -> dict[str, Any]:
    """Options that leave it only these: its own by name, and servers' as `mcp__server__tool`. None is all."""
    if tools is None:
        return {}
    servers = options.mcp_servers
    if isinstance(servers, dict):
        servers = {name: one for name, one in servers.items() if any(_is_of(tool, name) for tool in tools)}
    elif not any(tool.startswith("mcp__") for tool in tools):
        servers = {}
    hooks = dict(options.hooks or {})
    hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), HookMatcher(hooks=[_only(tools)])]
    return {
        "tools": [tool for tool in tools if not tool.startswith("mcp__")],
        "mcp_servers": servers,
        "strict_mcp_config": True,
        "hooks": hooks,
    }


def _is_of(tool: str, server: str) -> bool:
    return tool == f"mcp__{server}" or tool.startswith(f"mcp__{server}__")


def _only(tools: tuple[str, ...]) -> Any:
    async def refuse(given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        name = str(given.get("tool_name"))
        if name in tools or any(name.startswith(f"{tool}__") for tool in tools if tool.startswith("mcp__")):
            return {}
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": f"{name} cannot be used here.",
            }
        }

    return refuse
