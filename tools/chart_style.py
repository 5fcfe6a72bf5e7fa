"""The frame of every chart: light and dark by the reader's own setting, and readable without colour."""

from __future__ import annotations

from html import escape

WIDTH = 760  # pixels
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 14px }
  .small { font-size: 11px }
  .bar { stroke: #1f2328; fill: url(#lines) }
  .ours { fill: #1f2328 }
  .axis { stroke: #1f2328; stroke-opacity: .35 }
  .curve { stroke: #1f2328; fill: none; stroke-width: 2 }
  .frame { stroke: #ffffff; fill: #d0d7de }
  .deep { fill: #eaeef2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .bar { stroke: #e6edf3 }
    .ours { fill: #e6edf3 }
    .axis, .line, .curve { stroke: #e6edf3 }
    .frame { stroke: #0d1117; fill: #3d444d }
    .deep { fill: #2a313c }
  }
"""


def drawing(title: str, height: int, lines: list[str]) -> str:
    """A whole SVG: the title at the top, and the lines below it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
            f' role="img" aria-label="{escape(title)}">',
            f"<style>{STYLE}</style>",
            '<defs><pattern id="lines" width="6" height="6" patternUnits="userSpaceOnUse">'
            '<path class="line" d="M0 6L6 0" stroke="#1f2328" stroke-width="1"/></pattern></defs>',
            f'<text class="title" x="10" y="24">{escape(title)}</text>',
            *lines,
            "</svg>",
            "",
        ]
    )
