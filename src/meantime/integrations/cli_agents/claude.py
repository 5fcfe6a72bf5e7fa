"""Claude Code: `claude -p --output-format stream-json`."""

from __future__ import annotations

from meantime.integrations.agent_host.json_values import listed, mapping, number, part, text_in
from meantime.integrations.agent_host.turn_lines import LineSink
from meantime.kernel.lines import Line

from .cli_adapter import CliAdapter, Event, Reader, TurnRequest

COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def arguments(ask: TurnRequest) -> list[str]:
    settings = ask.settings
    said = ["-p", "--output-format", "stream-json", "--verbose"]
    if ask.resumes:
        said += ["--resume", ask.session]
    else:
        said += ["--resume", ask.source, "--fork-session"] if ask.source else []
        said += ["--session-id", ask.session]
    said += ["--model", settings.model] if settings.model else []
    said += ["--agent", settings.agent] if settings.agent else []
    tools = () if ask.last else settings.tools
    said += [] if tools is None else ["--tools", ",".join(tools)]
    allowed = [tool for tool in settings.allow if tool != "*"]
    said += [f"--allowedTools={','.join(allowed)}"] if allowed else []
    said += [f"--disallowedTools={','.join(settings.deny)}"] if settings.deny else []
    return said + (["--dangerously-skip-permissions"] if ask.free else [])


class ClaudeReader(Reader):
    def __init__(self, sink: LineSink, used: int = 0) -> None:
        super().__init__(sink, used)
        self._messages: set[str] = set()
        self._tokens = 0

    def read(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "system":
            self._system(event)
        elif kind in ("assistant", "user"):
            self._message(event, mapping(event, "message"))
        elif kind == "result":
            self._result(event)

    def _system(self, event: Event) -> None:
        if event.get("subtype") == "init":
            self.session = text_in(event.get("session_id"))
            self.sink.phase("thinking")
        elif event.get("subtype") == "api_retry":
            self.sink.phase("waits for the provider")

    def _message(self, event: Event, message: Event) -> None:
        if message.get("model") == "<synthetic>":
            return  # an error of the provider in its words: the result says it, too
        within = bool(event.get("parent_tool_use_id"))  # what its own subagents say is not its answer
        for block in listed(part(message, "content")):
            kind = part(block, "type")
            if kind == "text" and event["type"] == "assistant":
                (self.think if within else self.say)(text_in(block))
            elif kind == "thinking":
                self.think(text_in(part(block, "thinking")))
            elif kind == "tool_use":
                self.call(text_in(part(block, "id")), text_in(part(block, "name")), part(block, "input"))
            elif kind == "tool_result":
                failed = bool(part(block, "is_error"))
                self.result(text_in(part(block, "tool_use_id")), part(block, "content"), failed=failed)
        self._count(text_in(message.get("id")), message)

    def _count(self, id: str, message: Event) -> None:
        """Every block of a message is an event, and each has the usage of all of it."""
        if id and id not in self._messages:
            self._messages.add(id)
            tokens = _tokens(message)
            self._tokens += tokens
            self.sink.spent(turns=1, tokens=tokens)

    def _result(self, event: Event) -> None:
        self.session = text_in(event.get("session_id")) or self.session
        cost = event.get("total_cost_usd")
        more = max(0, _tokens(event) - self._tokens)  # what the single messages did not say
        self.sink.spent(tokens=more, cost=float(cost) if isinstance(cost, int | float) else 0.0)
        if denied := listed(part(event, "permission_denials")):
            tools = sorted({text_in(part(one, "tool_name")) for one in denied})
            text = f"Not allowed, so not done: {', '.join(tools)}. Name what it may do in `allow`."
            self.sink.line(Line(role="system", text=text))
        if event.get("is_error"):
            reasons = (text_in(event.get(name)) for name in ("errors", "result", "subtype"))
            self.fail(next(filter(None, reasons), ""), number(event.get("api_error_status")))
        else:
            self.done = True
            self.text = text_in(event.get("result")) or self.text


def _tokens(message: Event) -> int:
    return sum(number(part(message, "usage", name)) for name in COUNTED)


ADAPTER = CliAdapter(
    "claude", arguments, ClaudeReader, takes_ids=True, picks_tools=True, allows=True, denies=True,
    gone="no conversation found with session id",
)  # fmt: skip
