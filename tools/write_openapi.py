"""Writes the description of the HTTP API, as /v1/openapi.json serves it.

python tools/write_openapi.py openapi.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from meantime.surfaces.http.openapi import document

if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(document())
