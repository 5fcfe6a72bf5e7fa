"""Known habits of each agent: data, measured with the versions that docs/guides/acp.md names."""

from __future__ import annotations

import re
from pathlib import PurePath

from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.ports.session import AgentSettings


class Profile(Struct, frozen=True, kw_only=True):
    name: str
    programs: tuple[str, ...] = ()  # it is known by one of these words in its command
    fork: bool = False  # session/fork is there, advertised or not
    resumes: bool = True  # session/resume can be believed where it is advertised; else it is loaded
    lists_first: bool = False  # it loads what it does not know: session/list is asked before
    shares: bool = True  # several sessions in one process: only where a cancel need not end the process
    grace: float = 5.0  # seconds in which a cancel is obeyed; then the process is ended
    leaves_children: bool = False  # a cancelled turn leaves its commands running, so the process is ended
    late_arguments: bool = False  # a call is announced before its arguments are known
    mode: str = ""  # in which it asks before it acts: without that no rule would hold
    env: dict[str, str] = {}  # so that it does not call home, update itself or wait for a person
    asking: dict[str, str] = {}  # and so that it asks before it acts
    steer: str = ""  # the method that says something in a running turn, where there is one
    failure: str = ""  # a pattern: it reports a failure of the model as its last words
    failed_meta: str = ""  # or by this word in the _meta of its answer
    aborted: str = ""  # a pattern: a cancel is answered as an error like this


PROFILES = (
    Profile(name="generic"),
    Profile(
        name="goose",
        programs=("goose",),
        fork=True,
        shares=False,  # it does not hear a cancel before the model has answered
        grace=3.0,
        steer="_goose/unstable/session/steer",
        mode="approve",
        env={"GOOSE_TELEMETRY_ENABLED": "false"},
        failure=r"^Ran into this error: (?P<text>.*?)(?:\n\nPlease retry if .*)?$",
    ),
    Profile(
        name="opencode",
        programs=("opencode",),
        fork=True,
        late_arguments=True,
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        asking={"OPENCODE_PERMISSION": '{"bash":"ask","edit":"ask","webfetch":"ask"}'},
    ),
    Profile(
        name="claude",
        programs=("claude-agent-acp", "claude-code-acp"),
        fork=True,
        mode="default",
        env={"DISABLE_AUTOUPDATER": "1"},
    ),
    Profile(
        name="codex",
        programs=("codex-acp",),
        fork=True,
        shares=False,
        leaves_children=True,
        mode="workspace-write",  # its default one asks the model to judge every call
        failed_meta="systemError",
    ),
    Profile(name="gemini", programs=("gemini",), shares=False, env={"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    Profile(
        name="qwen",
        programs=("qwen",),
        shares=False,
        resumes=False,
        lists_first=True,
        aborted=r"Request was aborted",
    ),
    Profile(name="copilot", programs=("copilot",), shares=False, failure=r"^Error: (?P<text>\d{3}\b.*)$"),
)
BY_NAME = {profile.name: profile for profile in PROFILES}


def profile_of(settings: AgentSettings) -> Profile:
    """Found by its name, or by the program, or by a script that it runs."""
    if settings.profile:
        if settings.profile not in BY_NAME:
            raise InvalidInput(
                f"profile={settings.profile!r} is unknown.", hint=f"Use one of {', '.join(BY_NAME)}."
            )
        return BY_NAME[settings.profile]
    words = {part for word in settings.command[:2] for part in PurePath(word).parts}
    return next((known for known in PROFILES if words & set(known.programs)), BY_NAME["generic"])


def failure_in(profile: Profile, text: str) -> str:
    """The text of a model's failure, if the agent shows it as its own words; otherwise nothing."""
    found = re.match(profile.failure, text.strip(), re.DOTALL) if profile.failure else None
    return found["text"].strip() if found else ""


def needs_permission(settings: AgentSettings) -> bool:
    """Whether there is anything to be asked, as its settings go."""
    return settings.otherwise != "allow" or bool(settings.deny)
