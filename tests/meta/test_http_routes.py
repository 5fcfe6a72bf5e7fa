"""docs/reference/http.md has every route of the API, as the table of routes declares it."""

from __future__ import annotations

import re

import pytest
import write_http_routes as tool

from meantime.surfaces.http import routes

pytestmark = pytest.mark.docs


def test_the_page_is_fresh():
    assert tool.PAGE.read_text("utf-8") == tool.write(), "stale: run `python tools/write_http_routes.py`"


def test_every_route_is_on_it_once():
    listed = re.findall(r"(?m)^\| `(/v1/[^`]*)` \|", tool.PAGE.read_text("utf-8"))
    declared = [re.sub(r"\{(\w+)\}", r":\1", route.path) for route in routes.ROUTES]
    assert sorted(listed) == sorted(declared)


def test_a_route_that_has_changed_makes_the_page_stale(monkeypatch):
    first, *rest = routes.READS
    monkeypatch.setattr(routes, "READS", (first.__class__(**{**_fields(first), "summary": "Else"}), *rest))
    assert tool.PAGE.read_text("utf-8") != tool.write()


def _fields(route):
    return {name: getattr(route, name) for name in route.__struct_fields__}
