"""`meantime …`: the table of verbs. A verb is loaded when it is used, so that none pays for another."""

from __future__ import annotations

import sys

from meantime import NO_WINDOWS

_CLI = "meantime.surfaces.cli.verbs."
_APP = "meantime.app.verbs."

# Heading → verb → where it is declared, and its line in the help.
VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "Work": {
        "run": (_CLI + "run:command", "Start a command, or an agent, in the background."),
        "ps": (_CLI + "ps:command", "List tasks."),
        "show": (_CLI + "show:command", "Everything about one task."),
        "logs": (_CLI + "logs:command", "The output of a command; -f follows it."),
        "result": (_CLI + "result:command", "The result of a completed task, whole."),
        "wait": (_CLI + "wait:command", "Block until tasks have ended."),
        "cancel": (_CLI + "cancel:command", "Stop tasks."),
        "send": (_CLI + "send:command", "Say something to a running agent or command."),
        "notify": (_CLI + "notify:command", "Tell a task's conversation something before the task ends."),
        "watch": (_CLI + "watch:command", "Tell a conversation what is found in output, a file, a port, …"),
        "remind": (_CLI + "remind:command", "Tell a conversation something later, once."),
        "answer": (_CLI + "answer:command", "Answer a task that waits for input."),
        "resume": (_CLI + "resume:command", "Give an ended agent a follow-up."),
        "fork": (_CLI + "fork:command", "Start a new task with all that an agent knows."),
        "batch": (_CLI + "batch:command", "How far a batch is."),
        "promote": (_CLI + "task_actions:promote", "Send a call that runs inline to the background."),
        "clear": (_CLI + "task_actions:clear", "Hide ended tasks from lists."),
        "prune": (_CLI + "prune:command", "Delete tasks that ended long ago, or the named ones."),
    },
    "Watching": {
        "events": (_CLI + "events:command", "Follow everything that happens."),
        "threads": (_CLI + "threads:command", "The conversations that have tasks or notices."),
        "inbox": (_CLI + "inbox:command", "A thread's unread notices; looking does not settle them."),
        "unpark": (_CLI + "task_actions:unpark", "Put parked notices back into an inbox."),
        "open": (_CLI + "open:command", "Open the page with all tasks in the browser."),
    },
    "Agents": {
        "chat": (_APP + "chat:command", "Talk to an agent that never waits for its work."),
        "install": (_CLI + "install:command", "Add Meantime to a coding agent; shows the change first."),
        "hook": (_CLI + "hook:command", "The hook that a coding agent runs."),
        "mcp": (_APP + "mcp:command", "An MCP server on stdin and stdout, for a coding agent."),
    },
    "The daemon": {
        "up": (_APP + "up:command", "Start the daemon."),
        "down": (_CLI + "down:command", "Stop the daemon; commands run on."),
        "status": (_APP + "status:command", "How the daemon is."),
        "service": (
            _APP + "service:command",
            "Let systemd or launchd run the daemon.",
        ),
        "doctor": (_APP + "doctor:command", "Look for what is wrong, and say what to do."),
        "audit": (_APP + "audit:command", "Account for every notice and every silent task."),
        "backup": (_APP + "backup:backup", "Write the ledger, with all outputs, to one file."),
        "restore": (_APP + "backup:restore_", "Bring a backup back, into an empty home."),
        "workers": (_APP + "worker_list:command", "The workers on other machines, and their logins."),
        "worker": (_APP + "worker:command", "Perform work of another machine's daemon, here."),
        "token": (_CLI + "token:command", "Tokens for the HTTP API and the page: list, create, revoke."),
        "config": (_APP + "config:command", "The settings that hold, and where each came from."),
    },
    "More": {
        "demo": ("meantime.app.demo:command", "See it work, without a model or a key."),
        "completion": (_CLI + "completion:command", "Completion for bash, zsh or fish."),
    },
}


def main() -> None:
    """The executable."""
    if sys.platform == "win32":
        sys.exit(NO_WINDOWS)
    if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:  # an agent waits for it: without click
        from meantime.surfaces.hooks.hook_client import main as hook

        sys.exit(hook(sys.argv[2:]))
    try:
        from meantime import __version__
        from meantime.surfaces.cli.invocation import run
    except KeyboardInterrupt:  # while it was still loading
        sys.exit(130)
    sys.exit(run(VERBS, sys.argv[1:], __version__))


if __name__ == "__main__":
    main()
