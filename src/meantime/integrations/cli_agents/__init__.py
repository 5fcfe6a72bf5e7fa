"""Agents on the command line, a process for every turn: Claude Code, Codex, OpenCode, goose, Gemini CLI."""

from __future__ import annotations

from meantime.ports.clock import Clock
from meantime.ports.commands import Commands
from meantime.ports.session import AgentSettings, SessionHost

FORKS, PLAIN = "forks", "plain"


def variant(settings: AgentSettings) -> str:
    """Some can copy a session; for the others we do it."""
    from . import programs

    return FORKS if programs.forks(settings) else PLAIN


def host(clock: Clock, commands: Commands, variant: str = FORKS) -> SessionHost:
    from .session_host import CliSessionHost

    return CliSessionHost(clock, commands, forks=variant == FORKS)
