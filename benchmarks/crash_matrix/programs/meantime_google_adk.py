"""Meantime through its adapter for Google's ADK, with its sessions on SQLite."""

from __future__ import annotations

import os

from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from meantime_site import SLOW, main
from workbench import model_url, state_folder

from meantime import Thread
from meantime.integrations.google_adk import Talk

os.environ["GOOGLE_API_KEY"] = "none"


def talk_of(thread: Thread) -> Talk:
    agent = LlmAgent(name="helper", model=Gemini(model="gemini-2.5-flash", base_url=model_url()))
    sessions = SqliteSessionService(str(state_folder() / "sessions.db"))
    return Talk(agent, thread, *SLOW, sessions=sessions, threshold=0.05)


main(talk_of)
