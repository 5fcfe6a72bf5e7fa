"""Why there is no connection, or no longer one, in words."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from meantime.integrations.mcp.servers import Server

from .stdio_transport import StdioWire

HOW_IT_ENDED = 3.0  # seconds that a call which was cut off waits for the exit code
LAST_WORDS = 0.05  # seconds for what an ended server has said


async def why_not(problem: BaseException, server: Server, wire: StdioWire | None, *, gone: bool) -> str:
    """The reason why a server did not answer as it should when we began."""
    if isinstance(problem, TimeoutError):
        why = f"It did not answer within {server.start_timeout:g} s."
    elif isinstance(problem, MCPError) and problem.code != types.CONNECTION_CLOSED:
        why = problem.message
    else:
        why = in_words(problem)
    if wire is None:
        return why
    code = await wire.wait_ended(HOW_IT_ENDED - 1 if gone else 0.0)
    if code is not None:
        await asyncio.sleep(LAST_WORDS)
        why = f"It {_ended(code)} before it had answered."
    return why + _said(wire)


async def autopsy(wire: StdioWire | None) -> str:
    """The reason why a connection ended while it was used."""
    if wire is None:
        return "The connection was closed."
    code = await wire.wait_ended(HOW_IT_ENDED - 1)
    await asyncio.sleep(LAST_WORDS)
    return (f"It {_ended(code)}." if code is not None else "It closed its output.") + _said(wire)


def in_words(problem: Any) -> str:
    while isinstance(problem, BaseExceptionGroup):
        problem = cast("Any", problem).exceptions[0]
    if problem is None or isinstance(problem, asyncio.CancelledError):
        return "The connection was closed."
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename or ''}: {problem.strerror}.".removeprefix(": ")
    return str(problem) or type(problem).__name__


def _said(wire: StdioWire) -> str:
    noise = ""
    if wire.garbage:
        first = f"; the first: {wire.first_garbage!r}" if wire.first_garbage else ""
        noise = f" {wire.garbage} lines of its stdout were not messages{first}."
    return noise + (f" It said on stderr:\n{wire.stderr}" if wire.stderr else "")


def _ended(code: int) -> str:
    return f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
