"""Agents on the command line, a process for every turn: Claude Code, Codex, OpenCode, goose, Gemini CLI."""

from __future__ import annotations

from meantime.ports.clock import Clock
from meantime.ports.commands import Commands
from meantime.ports.session import SessionHost


def host(clock: Clock, commands: Commands) -> SessionHost:
    from .commandline import CommandLineHost

    return CommandLineHost(clock, commands)
