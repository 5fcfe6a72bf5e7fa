"""The mode and the model of a session, where the agent lets us choose them."""

from __future__ import annotations

from typing import Any

from meantime.integrations.agent_host.json_values import mapping, mappings
from meantime.kernel.errors import Refused
from meantime.ports.session import AgentSettings

from .acp_client import AcpClient
from .agent_options import AcpOptions
from .profiles import needs_permission


async def choose(
    client: AcpClient, session: str, answer: dict[str, Any], settings: AgentSettings, options: AcpOptions
) -> None:
    """`answer` is what the agent said when it made or loaded the session. A mode that a person has asked for
    and that cannot be had is refused; one that only our profile prefers is left out."""
    wanted = options.mode or (client.profile.mode if needs_permission(settings) else "")
    if wanted and wanted != _now(answer, "mode"):
        await _set(client, session, answer, "mode", wanted, options, must=bool(options.mode))
    if settings.model and settings.model != _now(answer, "model"):
        await _set(client, session, answer, "model", settings.model, options, must=True)


async def _set(
    client: AcpClient,
    session: str,
    answer: dict[str, Any],
    what: str,
    wanted: str,
    options: AcpOptions,
    *,
    must: bool,
) -> None:
    option = _option(answer, what)
    offered = _values(option) if option else _states(answer, what)
    if wanted not in offered:
        if must:
            few = ", ".join(offered[:20]) or f"none: it chooses its {what} by itself"
            raise Refused(f"The agent has no {what} {wanted!r}.", code="agent_refused", hint=f"It has {few}.")
        return
    if option:
        asked = {"sessionId": session, "configId": option["id"], "value": wanted}
        await client.request("session/set_config_option", asked, options.start)
    else:
        asked = {"sessionId": session, f"{what}Id": wanted}
        await client.request(f"session/set_{what}", asked, options.start)


def _option(answer: dict[str, Any], what: str) -> dict[str, Any] | None:
    listed = mappings(answer.get("configOptions"))
    return next((each for each in listed if what in (each.get("category"), each.get("id"))), None)


def _values(option: dict[str, Any]) -> list[str]:
    """They may be in groups."""
    found: list[str] = []
    for each in mappings(option.get("options")):
        found += _values(each) if "options" in each else [str(each.get("value"))]
    return found


def _states(answer: dict[str, Any], what: str) -> list[str]:
    """The older form: {"modes": {"availableModes": [{"id": …}]}}, of models {"modelId": …}."""
    state = mapping(answer.get(f"{what}s"))
    listed = mappings(state.get(f"available{what.title()}s"))
    return [str(each.get("id") or each.get(f"{what}Id")) for each in listed]


def _now(answer: dict[str, Any], what: str) -> str:
    option = _option(answer, what)
    if option:
        return str(option.get("currentValue"))
    state = mapping(answer.get(f"{what}s"))
    return str(state.get(f"current{what.title()}Id") or "")
