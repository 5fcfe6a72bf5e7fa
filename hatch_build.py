"""The description of the package: README.md with links that work where there is no repository around it.

Hatchling calls it for every build. Until `[project.urls]` in pyproject.toml has a `Source`, a link to a file
of ours is its text alone, and a picture is left out; with it, both lead there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text, source)}


def outside(text: str, source: str) -> str:
    """The page for readers who have no files of the repository."""
    if not source:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    source = source.rstrip("/")
    text = PICTURE.sub(lambda found: found[0].replace(found[2], f"{source}/raw/main/{found[2]}"), text)
    return LINK.sub(lambda found: f"[{found[1]}]({source}/blob/main/{found[2]})", text)
