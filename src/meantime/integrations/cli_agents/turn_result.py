"""How a turn ended: by what the program said, and by how it went."""

from __future__ import annotations

from meantime.integrations.agent_host.host_errors import failed, signal_name
from meantime.kernel import provider_errors
from meantime.kernel.model import Failed
from meantime.kernel.payloads import clean
from meantime.ports.commands import CommandEnd
from meantime.ports.session import Turned

from .cli_adapter import CliAdapter
from .turn_output import TurnOutput

MOST = 4_000  # characters of an error


def judge(adapter: CliAdapter, output: TurnOutput, ending: CommandEnd, stderr: str) -> Turned:
    reader = output.reader
    if ending.error is not None:
        return Turned(error=ending.error)
    if ending.lost:
        return Turned(lost=ending.lost)
    well = ending.exit_code == 0
    done = reader.done and not reader.error
    if done and (well or (ending.stopped and ending.exit_code is None)):  # it was done, and lingered
        return Turned(text=reader.text)
    if ending.stopped:
        return Turned(stopped=True)
    if reader.error:
        error = _short(reader.error)
        return _failed(adapter, error, error, ending, reader.status)
    if well and not output.whole and reader.text:
        return Turned(text=reader.text)  # the end of it was said while nobody was there, and not kept
    words = _short(stderr) or _short(output.noise)
    return _failed(adapter, f"{_how(adapter.name, ending)} {words}".strip(), words, ending, 0)


def _how(name: str, ending: CommandEnd) -> str:
    if ending.signal is not None:
        return f"{name} was killed by {signal_name(ending.signal)}."
    if ending.exit_code:
        return f"{name} ended with exit code {ending.exit_code}:"
    return f"{name} ended and did not say that its turn was over."


def _failed(adapter: CliAdapter, why: str, words: str, ending: CommandEnd, status: int) -> Turned:
    """`why` is for people; `words` are the program's own, by which the error is judged."""
    if adapter.is_gone(why):
        text = f"{adapter.name} does not have this session any more: {why}"
        return failed(Failed(text, "session_gone"))
    if ending.signal is not None:
        return failed(Failed(why, "signal", signal=ending.signal))
    status = status or provider_errors.status_in(words)
    advice = provider_errors.judge(words, status)
    code = f"http_{status}" if status else "rate_limited" if advice.limited else "agent_failed"
    return failed(Failed(why, code, exit_code=ending.exit_code or None), advice)


def _short(text: str) -> str:
    return clean(text).strip()[-MOST:]
