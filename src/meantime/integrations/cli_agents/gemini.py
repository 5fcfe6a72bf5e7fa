"""Gemini CLI: `gemini -o stream-json`."""

from __future__ import annotations

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest, number, part, words


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
            self.session = words(event.get("session_id"))
            self.sink.phase("thinking")
        elif kind == "message" and event.get("role") == "assistant":
            self.piece(words(event.get("content")))
        elif kind == "tool_use":
            self.call(words(event.get("tool_id")), words(event.get("tool_name")), event.get("parameters"))
        elif kind == "tool_result":
            failed = event.get("status") != "success"
            self.result(words(event.get("tool_id")), event.get("output") or event.get("error"), failed=failed)
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
            self.fail(words(part(event, "error", "message")) or words(event.get("error")))


DIALECT = CliAdapter(
    "gemini", arguments, GeminiReader, takes_ids=True, forks=False, allows=True,
    gone="invalid session identifier|no previous sessions",
)  # fmt: skip
