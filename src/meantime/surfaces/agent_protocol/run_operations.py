"""Runs: begun, waited for, streamed, found again, cancelled."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from functools import partial
from urllib.parse import urlencode

from starlette.responses import Response

from meantime.kernel.errors import Refused
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.agent_runs.streamed_response import StreamedResponse
from meantime.surfaces.http.responses import encode, json_response

from .operation import Operation, ProtocolRequest, ProtocolSite
from .run_encoding import Wire, failure_of, interrupts, wire_run
from .run_requests import RunCreate
from .run_stream import SSE, EventWriter, modes_of
from .thread_operations import known, values
from .thread_records import check_thread

MOST_LISTED = 1_000


async def create_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    run = await _begun(site, asked)
    return json_response(wire_run(run), headers=_headers(run))


async def wait_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    run = await _begun(site, asked)
    return _waiting(site, run, cancel=asked.body.on_disconnect == "cancel")


async def stream_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    run = await _begun(site, asked)
    modes = modes_of(asked.body.stream_mode)
    return _streaming(site, run, modes, None, cancel=asked.body.on_disconnect == "cancel")


async def list_runs(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    thread = await known(site, asked.thread)
    limit, offset = asked.number("limit", 10, MOST_LISTED), asked.number("offset", 0, MOST_LISTED)
    status = asked.request.query_params.get("status")
    found = await site.conversations.runs(thread, MOST_LISTED if status else limit, 0 if status else offset)
    runs = [wire_run(run) for run in found]
    if status:
        runs = [run for run in runs if run["status"] == status][offset : offset + limit]
    return json_response(runs)


async def get_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(wire_run(await _found(site, asked)))


async def join_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return _waiting(site, await _found(site, asked), cancel=False)


async def join_stream(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    """From the event that the client saw last, if it says so."""
    run = await _found(site, asked)
    modes = modes_of(asked.request.query_params.getlist("stream_mode"))
    seen = asked.request.headers.get("last-event-id", "")
    since = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 19 else None
    return _streaming(site, run, modes, since, cancel=asked.flag("cancel_on_disconnect"))


async def cancel_run(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    run = await site.conversations.cancel(await _found(site, asked), asked.by)
    if asked.flag("wait"):
        return StreamedResponse(_until_ended(site, run), site.deps.polls, _json_headers(run))
    return json_response({}, 202)


async def _begun(site: ProtocolSite, asked: ProtocolRequest) -> NumberedRun:
    """The run that a message began, or that its answer lets go on."""
    given: RunCreate = asked.body
    given.check()
    agent = site.conversations.check_agent(given.assistant_id)
    if "thread" not in asked.request.path_params:
        thread = asked.own or str(uuid.uuid4())
    elif given.if_not_exists == "create":
        thread = check_thread(asked.thread)
    else:
        thread = await known(site, asked.thread)
    if given.command is None:
        return await site.conversations.say(thread, agent, given.said(), given.busy)
    task = await site.conversations.newest(thread)
    if task is None or task.question is None:
        text = f"The thread {thread} has no interrupt to answer."
        raise Refused(text, code="not_waiting", hint="Send a message as input.")
    run = NumberedRun(task, task.run.number)
    return await site.conversations.answer(run, given.answer(task.question), asked.by)


async def _found(site: ProtocolSite, asked: ProtocolRequest) -> NumberedRun:
    return await site.conversations.run(asked.request.path_params["run"], asked.thread)


def _headers(run: NumberedRun, then: str = "") -> dict[str, str]:
    """Where the run is, and where a client that was cut off reads on."""
    path = f"/threads/{run.thread}/runs/{run.id}"
    return {"Content-Location": path} | ({"Location": f"{path}/{then}"} if then else {})


def _json_headers(run: NumberedRun) -> dict[str, str]:
    return {"Content-Type": "application/json", **_headers(run, "join")}


def _waiting(site: ProtocolSite, run: NumberedRun, *, cancel: bool) -> Response:
    left = partial(site.conversations.cancel, run, "user") if cancel else None
    return StreamedResponse(_until_ended(site, run), site.deps.polls, _json_headers(run), left)


async def _until_ended(site: ProtocolSite, run: NumberedRun) -> AsyncGenerator[bytes]:
    """White space until the run ends, so that no proxy takes the connection for dead; then the values."""
    yield b"\n"
    async for step in site.follower.follow(run):
        run = step.run
        if not step.changed:
            yield b"\n"
    yield encode(await final_values(site, run))


async def final_values(site: ProtocolSite, run: NumberedRun) -> Wire:
    found = await values(site, run.task)
    if run.waits:
        return {**found, "__interrupt__": interrupts(run.task)}
    failure = failure_of(run)
    if failure is not None:
        return {**found, "__error__": {"error": failure[0], "message": failure[1]}}
    return found


def _streaming(
    site: ProtocolSite, run: NumberedRun, modes: frozenset[str], since: int | None, *, cancel: bool
) -> Response:
    # A client that was cut off asks for nothing but this address: the modes are part of it.
    headers = {**SSE, **_headers(run, f"stream?{urlencode([('stream_mode', one) for one in sorted(modes)])}")}
    left = partial(site.conversations.cancel, run, "user") if cancel else None
    return StreamedResponse(_events(site, run, modes, since), site.deps.polls, headers, left)


async def _events(
    site: ProtocolSite, run: NumberedRun, modes: frozenset[str], since: int | None
) -> AsyncGenerator[bytes]:
    writer = EventWriter(run, modes)
    yield writer.begin()
    async for step in site.follower.follow(run, since):
        run = step.run
        yield writer.lines(step) or b": the run goes on\n\n"
        if step.lines and "values" in modes and not run.stands:
            yield writer.values(await values(site, run.task), step.cursor)
    yield writer.end(run, await final_values(site, run))


OPERATIONS = (
    Operation("POST", "/runs", create_run, RunCreate, writes=True),
    Operation("POST", "/runs/wait", wait_run, RunCreate, writes=True),
    Operation("POST", "/runs/stream", stream_run, RunCreate, writes=True),
    Operation("POST", "/threads/{thread}/runs", create_run, RunCreate, writes=True),
    Operation("POST", "/threads/{thread}/runs/wait", wait_run, RunCreate, writes=True),
    Operation("POST", "/threads/{thread}/runs/stream", stream_run, RunCreate, writes=True),
    Operation("GET", "/threads/{thread}/runs", list_runs),
    Operation("GET", "/threads/{thread}/runs/{run}", get_run),
    Operation("GET", "/threads/{thread}/runs/{run}/join", join_run),
    Operation("GET", "/threads/{thread}/runs/{run}/stream", join_stream),
    Operation("POST", "/threads/{thread}/runs/{run}/cancel", cancel_run, writes=True),
)
