"""Codex: `codex exec --json`."""

from __future__ import annotations

from meantime.integrations.agent_host.json_values import mapping, number, part, text_in

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest


def arguments(ask: TurnRequest) -> list[str]:
    said = ["exec", "--json", "--skip-git-repo-check"]
    said += ["-m", ask.settings.model] if ask.settings.model else []
    if ask.last:
        said += ["-s", "read-only"]  # it cannot be without tools: so they can do nothing
    elif ask.free:
        said.append("--dangerously-bypass-approvals-and-sandbox")
    if ask.resumes:
        said += ["resume", ask.session]
    elif ask.source:
        said += ["fork", ask.source]
    return [*said, "-"]


class CodexReader(Reader):
    def read(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "thread.started":
            self.session = text_in(event.get("thread_id"))
        elif kind == "turn.started":
            self.sink.spent(turns=1)  # how often it asks its model it does not say
            self.sink.phase("thinking")
        elif kind in ("item.started", "item.completed"):
            self._item(mapping(event, "item"), done=kind == "item.completed")
        elif kind == "turn.completed":
            self.done = True
            self._count(mapping(event, "usage"))
        elif kind == "turn.failed":
            self.fail(text_in(part(event, "error")))
        elif kind == "error":  # also "Reconnecting… 1/5": whether it was the end, the next event says
            self.sink.phase("waits for the provider")

    def _item(self, item: Event, *, done: bool) -> None:
        kind, id = item.get("type"), text_in(item.get("id"))
        if kind == "agent_message":
            self.say(text_in(item.get("text")))
        elif kind == "reasoning":
            self.think(text_in(item.get("text")))
        elif kind == "command_execution":
            self.call(id, "shell", {"command": item.get("command")})
            if done:
                failed = item.get("exit_code") != 0
                self.result(id, item.get("aggregated_output"), failed=failed)
        elif kind == "mcp_tool_call":
            tool = f"{text_in(item.get('server'))}/{text_in(item.get('tool'))}"
            self._tool(id, tool, item.get("arguments"), item, done=done)
        elif kind in ("file_change", "web_search", "todo_list", "collab_tool_call"):
            given = {name: value for name, value in item.items() if name not in ("id", "type", "status")}
            self._tool(id, text_in(kind), given, item, done=done)
        # an item that is an "error" is a warning: whether the turn failed, it says at its end

    def _tool(self, id: str, tool: str, given: object, item: Event, *, done: bool) -> None:
        self.call(id, tool, given)
        if done:
            error = item.get("error")
            failed = bool(error) or item.get("status") == "failed"
            self.result(id, error or item.get("result") or item.get("status"), failed=failed)

    def _count(self, usage: Event) -> None:
        """It counts the whole session, including what a fork has from its source."""
        self.total = number(usage.get("input_tokens")) + number(usage.get("output_tokens"))
        self.sink.spent(tokens=max(0, self.total - self.used))


ADAPTER = CliAdapter("codex", arguments, CodexReader, gone="no rollout found|thread not found")
