"""The tools that a dialect offers: their names, schemas and exports, without a runtime."""

from __future__ import annotations

import json

from meantime.ports.dialect import Dialect, Offer, Tool
from meantime.toolset.exports import FORMS

OFFERS = [
    Offer(agents=("explore", "review"), tools=("index",)),
    Offer(agents=(), commands=False),
    Offer(),
]


async def every_schema_is_valid(dialect: Dialect) -> None:
    """Needs jsonschema."""
    from jsonschema import Draft202012Validator

    for offer in OFFERS:
        tools = dialect.tools(offer)
        names = [tool.name for tool in tools]
        assert len(set(names)) == len(names), f"two tools have the same name: {names}"
        for tool in tools:
            assert tool.name.replace("_", "").replace("-", "").isalnum(), (
                f"{tool.name!r} is not the name of a tool"
            )
            assert tool.description, f"{tool.name} does not say what it does"
            assert tool.schema.get("type") == "object", f"{tool.name} takes no object"
            Draft202012Validator.check_schema(tool.schema)
            assert "$ref" not in json.dumps(tool.schema), f"{tool.name}: models are shown no references"


async def what_is_not_offered_is_gone(dialect: Dialect) -> None:
    for offer in OFFERS:
        off = Offer(
            agents=offer.agents, tools=offer.tools, commands=offer.commands, background=False, cancel=False
        )
        for tool in dialect.tools(off):
            assert not tool.starts, f"{tool.name} starts work where nothing may be handed off"
            assert not tool.cancels, f"{tool.name} cancels where the model may not"
    if not dialect.policy.model_cancels:
        none = Offer(agents=(), cancel=False)
        assert not [tool.name for tool in dialect.tools(none) if tool.cancels]


async def exports_carry_the_same_tools(dialect: Dialect) -> None:
    for offer in OFFERS:
        for tool in dialect.tools(offer):
            for form, export in FORMS.items():
                carried = json.loads(json.dumps(export(tool)))
                body = carried.get("function", carried)
                assert (body["name"], body["description"]) == (tool.name, tool.description), form
                schema = body.get("parameters") or body.get("input_schema") or body.get("inputSchema")
                _same(schema, tool, form)


def _same(schema: dict[str, object], tool: Tool, form: str) -> None:
    for key in ("properties", "required"):
        mine, theirs = tool.schema.get(key, {}), schema.get(key, {})
        assert list(mine) == list(theirs), f"{tool.name} as {form} has other {key}"  # type: ignore[call-overload]
    wanted = "OBJECT" if form == "gemini" else "object"
    assert schema["type"] == wanted, f"{tool.name} as {form}"
    if form != "gemini":
        assert schema == tool.schema, f"{tool.name} as {form}"


CHECKS = (
    every_schema_is_valid,
    what_is_not_offered_is_gone,
    exports_carry_the_same_tools,
)
