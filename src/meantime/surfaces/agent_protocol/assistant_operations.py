"""Assistants: the agents that the owner of the ledger has, by their names. They are configured there, and not
made by clients."""

from __future__ import annotations

from itertools import pairwise

from starlette.responses import Response

from meantime.kernel.durations import iso
from meantime.kernel.errors import NotFound
from meantime.ports.owner import AgentAbout
from meantime.surfaces.http.responses import json_response

from .operation import Operation, ProtocolRequest, ProtocolSite
from .run_encoding import AGENT_NODE, Wire
from .run_requests import AssistantSearch

_MESSAGES: Wire = {
    "type": "object",
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
}
_EMPTY: Wire = {"type": "object", "properties": {}}


async def get_assistant(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(_wire(site, _found(site, asked)))


async def search_assistants(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    given: AssistantSearch = asked.body
    found = [_wire(site, one) for one in _matching(site, given)]
    return json_response(found[given.offset : given.offset + given.limit])


async def count_assistants(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(len(_matching(site, asked.body)))


async def get_schemas(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    same = ("input_schema", "output_schema", "state_schema")
    found: Wire = {"graph_id": _found(site, asked).name, **dict.fromkeys(same, _MESSAGES)}
    return json_response({**found, "config_schema": _EMPTY, "context_schema": _EMPTY})


async def get_graph(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    """One node: how an agent is built inside is not known here."""
    _found(site, asked)
    names = ("__start__", AGENT_NODE, "__end__")
    nodes = [{"id": name, "type": "schema", "data": name} for name in names]
    edges = [{"source": one, "target": other} for one, other in pairwise(names)]
    return json_response({"nodes": nodes, "edges": edges})


def _matching(site: ProtocolSite, given: AssistantSearch) -> list[AgentAbout]:
    """Assistants have no metadata, so none has what is asked for by it."""
    agents = () if given.metadata else site.deps.owner.about().agents
    named = [one for one in agents if given.graph_id in (None, one.name)]
    return [one for one in named if given.name is None or given.name.lower() in one.name.lower()]


def _found(site: ProtocolSite, asked: ProtocolRequest) -> AgentAbout:
    name = site.conversations.check_agent(asked.request.path_params["assistant"])
    agent = next((one for one in site.deps.owner.about().agents if one.name == name), None)
    if agent is None:  # it went in this moment
        raise NotFound(f"There is no agent {name!r}.")
    return agent


def _wire(site: ProtocolSite, agent: AgentAbout) -> Wire:
    began = iso(site.deps.started_at)
    return {
        "assistant_id": agent.name,
        "graph_id": agent.name,
        "name": agent.name,
        "description": agent.description or None,
        "config": {},
        "context": {},
        "metadata": {},
        "version": 1,
        "created_at": began,
        "updated_at": began,
    }


OPERATIONS = (
    Operation("POST", "/assistants/search", search_assistants, AssistantSearch),
    Operation("POST", "/assistants/count", count_assistants, AssistantSearch),
    Operation("GET", "/assistants/{assistant}", get_assistant),
    Operation("GET", "/assistants/{assistant}/schemas", get_schemas),
    Operation("GET", "/assistants/{assistant}/graph", get_graph),
)
