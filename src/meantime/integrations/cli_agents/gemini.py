"""Gemini CLI: `gemini -o stream-json`."""

from __future__ import annotations

from meantime.integrations.agent_host.json_values import number, part, text_in

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest


def arguments(ask: TurnRequest) -> list[str]:
    settings = ask.settings
    said = ["-o", "stream-json", "--resume" if ask.resumes else "--session-id", ask.session]
    said += ["-m", settings.model] if settings.model else []
    if ask.last:
        return [*said, "--approval-mode", "plan"]  # it reads, and changes nothing
    allowed = [tool for tool in settings.allow if tool != "*"]
    said += ["--allowed-tools", ",".join(allowed)] if allowed else []
    return said + (["--approval-mode", "yolo"] if ask.free else [])


class GeminiReader(Reader):
    def read(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "init":
            self.session = text_in(event.get("session_id"))
            self.sink.phase("thinking")
        elif kind == "message" and event.get("role") == "assistant":
            self.piece(text_in(event.get("content")))
        elif kind == "tool_use":
            self.call(text_in(event.get("tool_id")), text_in(event.get("tool_name")), event.get("parameters"))
        elif kind == "tool_result":
            said = event.get("output") or event.get("error")
            self.result(text_in(event.get("tool_id")), said, failed=event.get("status") != "success")
        elif kind == "error" and event.get("severity") != "error":
            self.sink.phase("goes on after a warning")
        elif kind == "result":
            self._result(event)

    def _result(self, event: Event) -> None:
        self.flush()
        self.sink.spent(turns=1, tokens=number(part(event, "stats", "total_tokens")))
        if event.get("status") == "success":
            self.done = True
        else:
            self.fail(text_in(part(event, "error", "message")) or text_in(event.get("error")))


ADAPTER = CliAdapter(
    "gemini", arguments, GeminiReader, takes_ids=True, forks=False, allows=True,
    gone="invalid session identifier|no previous sessions",
)  # fmt: skip
