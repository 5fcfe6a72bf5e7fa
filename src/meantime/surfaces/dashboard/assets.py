"""The files of the page: read once, from the folder beside this file, and served from memory.

A name that is not among them is not looked for on the disk, so no path can leave the folder. A daemon that is
older than an upgrade keeps the page that fits it.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

from .module_bundle import imported, in_order, joined, passed_on

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
SHEET = "styles.css"  # all style sheets in one; it is made when they are read
BUNDLE = "opening.js"  # the modules of the first view in one (module_bundle.py)
VENDORED = "vendor/"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "require-trusted-types-for 'script'; trusted-types lit-html; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),  # a page that opened this one holds no handle to it
    (b"cross-origin-resource-policy", b"same-origin"),  # no other site loads our scripts as its own
)
_SMALL = 256  # bytes: below that gzip saves nothing
_LINKED = re.compile(r"""(?:src|href)=["']/assets/([^"'?#]+)""")
_STYLED = re.compile(r"""\s*<link rel="stylesheet" href="/assets/([^"'?#]+)" />""")
_SCRIPT = re.compile(r"""\s*<script type="module" src="/assets/([^"'?#]+)"></script>""")


class Asset:
    """One file, in memory."""

    def __init__(self, name: str, data: bytes) -> None:
        self.data = data
        self.type = TYPES[posixpath.splitext(name)[1]]
        self.tag = hashlib.sha256(data).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes | None:
        """By gzip; None where that saves nothing."""
        import gzip  # when somebody looks at the page

        found = gzip.compress(self.data, mtime=0) if len(self.data) > _SMALL else self.data
        return found if len(found) < len(self.data) else None


class Assets:
    """The files of one folder by their names, such as `vendor/lit.js`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._sources = _read(folder)
        self.files: Mapping[str, Asset] = self._sources
        if not self.missing:
            self.files = {**self._sources, SHEET: Asset(SHEET, self._sheets()), **self._bundle()}

    @cached_property
    def version(self) -> str:
        """A hash of all files. An answer under a path with it never changes, so a browser may keep it."""
        named = "".join(name + one.tag for name, one in self.files.items())
        return hashlib.sha256(named.encode()).hexdigest()[:16]

    @cached_property
    def page(self) -> Asset:
        """The index as it is served: with one style sheet, one script, a link to each module that the script
        imports, and the version in every link. Modules import each other by relative paths, so their paths
        have the version, too."""
        text = _SCRIPT.sub("", _STYLED.sub("", self.files[INDEX].data.decode("utf-8")))
        sheet, script, *imported = self.opening
        links = [f'<link rel="stylesheet" href="/assets/{sheet}" />']
        links += [f'<link rel="modulepreload" href="/assets/{name}" />' for name in imported]
        links.append(f'<script type="module" src="/assets/{script}"></script>')
        text = text.replace("\n  </head>", "".join(f"\n    {link}" for link in links) + "\n  </head>", 1)
        return Asset(INDEX, text.replace('="/assets/', f'="/assets/{self.version}/').encode("utf-8"))

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """The files that the page loads at once: the style sheet, the script, and what it imports."""
        return SHEET, BUNDLE, *imported(BUNDLE, self.files[BUNDLE].data.decode("utf-8"))

    @property
    def bundled(self) -> dict[str, str]:
        """The modules of the first view, each behind those that it imports."""
        modules = {
            name: one.data.decode("utf-8") for name, one in self._sources.items() if name.endswith(".js")
        }
        own = {name: text for name, text in modules.items() if not name.startswith(VENDORED)}
        scripts = _SCRIPT.findall(self._sources[INDEX].data.decode("utf-8"))
        return {name: own[name] for name in in_order(scripts, own)}

    def _bundle(self) -> dict[str, Asset]:
        """One file with these modules, and in the place of each a line that passes on what it exports."""
        bundled = self.bundled
        texts = {name: passed_on(name, text, BUNDLE) for name, text in bundled.items()}
        return {
            name: Asset(name, text.encode("utf-8"))
            for name, text in {**texts, BUNDLE: joined(bundled)}.items()
        }

    def _sheets(self) -> bytes:
        """All style sheets of the index, in their order: a request for each costs more than its bytes."""
        text = self.files[INDEX].data.decode("utf-8")
        return b"\n".join(self.files[name].data for name in _STYLED.findall(text))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Files that the page loads and that are not here: without one of them the page stays blank."""
        return tuple(sorted(self._loaded() - self._sources.keys()))

    def _loaded(self) -> set[str]:
        """The index, and all files that are loaded with it."""
        found, left = set[str](), [INDEX]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += _needed(name, self._sources[name]) if name in self._sources else ()
        return found


@cache
def installed() -> Assets:
    """The files of this installation."""
    return Assets()


def _read(folder: Path) -> dict[str, Asset]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in TYPES and path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: Asset(name, path.read_bytes()) for name, path in names.items()}


def _needed(name: str, asset: Asset) -> list[str]:
    """The files that this one loads by itself."""
    text = asset.data.decode("utf-8", "replace")
    if name.endswith(".html"):
        return _LINKED.findall(text)
    return imported(name, text) if name.endswith(".js") else []
