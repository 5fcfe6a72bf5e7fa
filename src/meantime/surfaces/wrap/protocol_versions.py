"""Versions of MCP, and the envelope that requests of the newest carry in place of a handshake."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from .raw_messages import ENVELOPE, NOTHING, encoded, parts, raw, refusal, text

WITH_HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # from the oldest on
WITHOUT_HANDSHAKE = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SUBSCRIPTION = (
    PREFIX + name for name in ("clientInfo", "clientCapabilities", "logLevel", "subscriptionId")
)
UNSUPPORTED_VERSION = -32022
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
LISTS_CHANGED = {  # by the name in a filter of subscriptions/listen
    f"{kind}ListChanged": f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")
}


def meta_of(params: Raw) -> dict[str, Raw]:
    return parts(parts(params).get("_meta", NOTHING))


def with_meta(params: Raw, meta: dict[str, Raw]) -> Raw:
    return encoded({**parts(params), "_meta": encoded(meta)})


def version_of(params: Raw) -> str:
    """The version in the envelope of a request; empty for none."""
    return text(meta_of(params).get(ENVELOPE)) if ENVELOPE.encode() in bytes(params) else ""


def envelope_of(initialize: Raw) -> dict[str, Raw]:
    """The envelope of a client that introduced itself with these params of `initialize`. Tasks are left out:
    by its protocol they have another form."""
    said = parts(initialize)
    can = {name: one for name, one in parts(said.get("capabilities", NOTHING)).items() if name != "tasks"}
    return {
        ENVELOPE: raw(WITHOUT_HANDSHAKE),
        CLIENT_INFO: said.get("clientInfo") or raw({"name": "host", "version": ""}),
        CLIENT_CAPABILITIES: encoded(can),
    }


def no_common_version(id: Raw, host: str, server: str, supported: list[str]) -> bytes:
    """`host` and `server` say what each speaks."""
    said = f"The host and the server have no version of MCP in common: the host speaks {host}, {server}"
    data: dict[str, Any] = {"supported": supported, "requested": host}
    return refusal(id, UNSUPPORTED_VERSION, said, data)
