"""The certificates that servers over HTTP are checked with, loaded once in a process."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def tls_context() -> ssl.SSLContext:
    """A client of its own would load them again for each session, even of an address without TLS: 40 ms in
    which the event loop does nothing else, and 1 MB."""
    return httpx2.create_ssl_context()
