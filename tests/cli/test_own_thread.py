"""Which conversation a command on an agent's shell belongs to."""

from __future__ import annotations

from meantime.surfaces.caller.caller_thread import own_thread


def test_a_subagent_of_codex_hands_off_for_the_session_of_the_person():
    subagent = {"CODEX_SESSION_ID": "root", "CODEX_THREAD_ID": "child"}
    assert own_thread(subagent) == "mcp-root"
    assert own_thread({"CODEX_THREAD_ID": "older"}) == "mcp-older"  # versions without a session's id


def test_what_the_environment_says_counts_before_an_agent_s_own_name():
    assert own_thread({"MEANTIME_THREAD": "conv-1", "CODEX_SESSION_ID": "root"}) == "conv-1"
    assert own_thread({}) == "cli"
