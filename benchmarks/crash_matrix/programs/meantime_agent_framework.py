"""Meantime through its adapter for Microsoft's agent-framework, with its sessions in files."""

from __future__ import annotations

from agent_framework import Agent, FileSessionStore
from chat_client import HttpChatClient
from meantime_site import SLOW, main
from workbench import state_folder

from meantime import Thread
from meantime.integrations.agent_framework import Talk


def talk_of(thread: Thread) -> Talk:
    store = FileSessionStore(state_folder() / "sessions")
    return Talk(Agent(HttpChatClient(), "Be brief."), thread, *SLOW, store=store, threshold=0.05)


main(talk_of)
