"""Query strings and bodies of the routes about threads, turns, notices, events and the server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from meantime.conversation.dialect_lookup import OWN
from meantime.kernel.notices import NoticeState
from meantime.kernel.search_query import LONGEST

from .notice_schemas import MOST
from .schemas import Body, Id, Params, described, refused
from .task_requests import DEFAULT_WAIT, LONGEST_WAIT, MOST_OFFSET

LEASE, LONGEST_LEASE = 60.0, 3_600.0  # seconds: a lease is never without end, for a client may vanish
MOST_ACKED = 1_000
MOST_INBOX = 200  # notices of a page of an inbox
MOST_LISTED = 1_000  # threads, or notices, in one answer
LONGEST_NAME = 4_096  # characters of a session's name, or of a path
UNTOLD = (NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED)
_LIMIT = refused(f"limit: from 1 to {MOST} notices at once.", ge=1, le=MOST)
_ACKED = refused(f"notices: at most {MOST_ACKED} at once.", max_length=MOST_ACKED)
_NAME = refused(f"session, transcript, host: at most {LONGEST_NAME} characters.", max_length=LONGEST_NAME)


# -- query strings


class ThreadRange(Params, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 200


class NoticeFilter(Params, frozen=True):
    state: Annotated[tuple[NoticeState, ...], described("One state, or several with commas.")] = UNTOLD
    thread: Id | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = MOST_LISTED
    offset: Annotated[int, Meta(ge=0, le=MOST_OFFSET)] = 0


class InboxRange(Params, frozen=True):
    before: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_OFFSET)] | None,
        described("The `before` of the last page; absent is the newest page."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_INBOX)] = 50


class WakeSignal(Params, frozen=True):
    seen: Annotated[
        int, described("The `seen` of the last answer; -1 at the beginning.", ge=-1, le=MOST_OFFSET)
    ] = -1
    timeout: Annotated[float, described("Seconds.", ge=0, le=LONGEST_WAIT)] = DEFAULT_WAIT


class EventFilter(Params, frozen=True):
    snapshot: Annotated[
        Literal["all", "bounded"],
        described("Beyond the seed: bounded is the active tasks, the newest 200, and counts."),
    ] = "all"
    replay: Annotated[bool, described("Beyond the seed: event ids, and Last-Event-ID is honoured.")] = False
    thread: Annotated[str | None, described("Beyond the seed: of one thread.")] = None
    batch: Annotated[str | None, described("Beyond the seed: of one batch.")] = None
    task: Annotated[str | None, described("Beyond the seed: of one task.")] = None
    q: Annotated[
        Annotated[str, Meta(max_length=LONGEST)] | None,
        described("Beyond the seed, with format=patches: a search, as that of /v1/tasks."),
    ] = None
    format: Annotated[
        Literal["tasks", "patches"],
        described(
            "Beyond the seed: patches is rows for a page, changed ones together at most every 0.1 s. Its ids "
            "are always there, and `snapshot`, `replay` and `task` do not apply."
        ),
    ] = "tasks"


class ToolsetChoice(Params, frozen=True):
    dialect: Annotated[str, described("The tools' vocabulary; 404 for an unknown one.")] = OWN
    by_session: Annotated[
        bool,
        described("Schemas let a call carry arguments that they do not name: a hook adds whose call it is."),
    ] = False


# -- bodies


class EmptyBody(Body):
    pass


class UnparkBody(Body):
    notices: Annotated[
        Annotated[tuple[str, ...], _ACKED] | None,
        described("Only these, by their ids; absent is all of the thread."),
    ] = None


class TurnBody(Body):
    lease: Annotated[
        float,
        described("Seconds until an unrenewed turn counts as dead, and its notices come back."),
        refused(f"lease: a turn is leased for up to {LONGEST_LEASE:g} seconds.", gt=0, le=LONGEST_LEASE),
    ] = LEASE
    limit: Annotated[int, _LIMIT] = MOST


class BoundaryBody(Body):
    limit: Annotated[int, _LIMIT] = MOST


class AckBody(Body):
    notices: Annotated[tuple[str, ...], _ACKED] = ()
    reads: Annotated[
        tuple[str, ...],
        described(
            "Notices of endings that the agent read by itself in this turn: they count as told, too, if that "
            "is still possible."
        ),
        _ACKED,
    ] = ()


class ReleaseBody(Body):
    failed: Annotated[bool, described("Counts a failed delivery; five park a notice.")] = False


class TellBody(Body):
    moment: Annotated[
        Literal["session-start", "user-prompt", "post-tool", "stop", "wait"],
        described("When the host asks; wait blocks until there is something, or nothing can come."),
    ]
    session: Annotated[str, described("The host's own name of its conversation."), _NAME] = ""
    transcript: Annotated[
        str, described("The path of the file into which the host writes its conversation."), _NAME
    ] = ""
    host: Annotated[
        str, described("Which program the host is; gemini reads its transcript in a way of its own."), _NAME
    ] = ""
    timeout: Annotated[
        float,
        described("Seconds of a wait."),
        refused(f"timeout: a wait takes from 0 to {LONGEST_WAIT:g} seconds.", ge=0, le=LONGEST_WAIT),
    ] = LONGEST_WAIT
