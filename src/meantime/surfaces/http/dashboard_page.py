"""`/` and `/assets/…`: the page for browsers, from the files of the package.

The page needs no token, for its files hold no data: it asks the API, with a token of its own, for everything
that it shows.
"""

from __future__ import annotations

import html
import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from meantime.surfaces.dashboard.assets import TYPES, Asset, Assets

from .responses import Refusal

ROOT, UNDER = "/", "/assets/"
PATHS = (ROOT, UNDER + "{name:path}")
_FRESH = "no-cache"  # kept by the browser, and asked for again each time: mostly answered with 304
_LASTING = "max-age=31536000, immutable"  # seconds; a path with the version of all files in it
_VERSION = re.compile("[0-9a-f]{16}")
_REPAIR = "pip install --force-reinstall 'meantime[server]'"


def is_page(path: str) -> bool:
    return path == ROOT or path.startswith(UNDER)


class DashboardPage:
    """ASGI, for both paths."""

    def __init__(self, assets: Assets) -> None:
        self._assets = assets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            allow = {"Allow": "GET, HEAD, OPTIONS"}
            raise Refusal(405, "read_only", "This path only reads.", "Use GET.", allow)
        request = Request(scope, receive, send)
        await self._answer(scope["path"], request)(scope, receive, send)

    def _answer(self, path: str, request: Request) -> Response:
        if path == ROOT and self._assets.missing:
            named = ", ".join(self._assets.missing[:10])
            return _broken(500, f"{named} should be in {self._assets.folder}, and is not there.")
        if path == ROOT:
            return _file(self._assets.page, request, _FRESH)
        version, name = _split(path.removeprefix(UNDER))
        asset = self._assets.files.get(name)
        if asset is None:
            return _broken(404, f"This version of the page has no file {name[:128]!r}.")
        # A page that is older than this daemon gets the file of now, and asks again the next time.
        return _file(asset, request, _LASTING if version == self._assets.version else _FRESH)


def _split(name: str) -> tuple[str, str]:
    """The version in front of a name, or an empty one, and the name."""
    version, _, rest = name.partition("/")
    return (version, rest) if _VERSION.fullmatch(version) else ("", name)


def _file(asset: Asset, request: Request, kept: str) -> Response:
    data, tag = asset.data, f'"{asset.tag}"'
    if asset.compressed is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
        data, tag = asset.compressed, f'"{asset.tag}-gzip"'
    headers = {"ETag": tag, "Cache-Control": kept, "Vary": "Accept-Encoding"}
    if _has(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    if data is not asset.data:
        headers["Content-Encoding"] = "gzip"
    return Response(data, headers={**headers, "Content-Type": asset.type})


def _takes_gzip(accepted: str) -> bool:
    for one in accepted.lower().split(","):
        coding, _, quality = (part.strip() for part in one.partition(";"))
        if coding in ("gzip", "*"):
            return quality.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False


def _has(tags: str, tag: str) -> bool:
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in tags.split(","))


def _broken(status: int, wrong: str) -> Response:
    """A page without a script or a style: nothing that it needs can be missing, too."""
    text = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Meantime: a file is missing</title>
<h1>The dashboard cannot be shown</h1>
<p>{html.escape(wrong)}</p>
<p>Load the page again. If this stays, install Meantime again, then restart the daemon:</p>
<pre>{html.escape(_REPAIR)}
meantime down
meantime up</pre>
<p>On the command line everything works: <code>meantime ps</code> lists the tasks.</p>
</html>
"""
    return Response(text, status, {"Cache-Control": "no-store"}, TYPES[".html"])
