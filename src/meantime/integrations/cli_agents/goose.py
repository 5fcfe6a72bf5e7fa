"""goose: `goose run --output-format stream-json`."""

from __future__ import annotations

from meantime.integrations.agent_host.json_values import listed, number, part, text_in

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest


def arguments(ask: TurnRequest) -> list[str]:
    said = ["run", "-n", ask.session, "--output-format", "stream-json"]
    said += ["--resume"] if ask.resumes else []
    provider, _, model = ask.settings.model.rpartition("/")
    said += ["--provider", provider] if provider else []
    said += ["--model", model] if model else []
    return [*said, "-i", "-"]


def environment(ask: TurnRequest) -> dict[str, str]:
    if ask.last:
        return {"GOOSE_MODE": "chat"}  # it talks, and calls nothing
    return {"GOOSE_MODE": "auto"} if ask.free else {}


class GooseReader(Reader):
    def read(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "message":
            for block in listed(part(event, "message", "content")):
                self._block(block, text_in(part(event, "message", "role")))
        elif kind == "error":
            self.flush()
            self.fail(text_in(event.get("error")) or text_in(event))
        elif kind == "complete":
            self.flush()
            self.done = True
            self.sink.spent(turns=1, tokens=number(event.get("total_tokens")))
            if self.text.startswith("Ran into this error"):  # it ends well, and says so as its answer
                self.fail(self.text)

    def _block(self, block: Event, role: str) -> None:
        kind, id = part(block, "type"), text_in(part(block, "id"))
        if kind == "text" and role == "assistant":
            self.piece(text_in(part(block, "text")))
        elif kind == "thinking":
            self.think(text_in(part(block, "thinking")))
        elif kind == "toolRequest":
            wanted = part(block, "toolCall", "value")
            self.call(id, text_in(part(wanted, "name")), part(wanted, "arguments"))
        elif kind == "toolResponse":
            given = part(block, "toolResult")
            failed = part(given, "status") == "error" or part(given, "value", "isError") is True
            self.result(id, part(given, "error") or part(given, "value"), failed=failed)


ADAPTER = CliAdapter(
    "goose", arguments, GooseReader, takes_ids=True, forks=False, gone="no session found",
    environment=environment,
)  # fmt: skip
