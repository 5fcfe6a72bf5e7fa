"""A client asks an owner of an older version for no more than it must."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from meantime.link.verb_messages import VERBS, VerbMessages


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_an_argument_that_is_its_default_is_left_out(verb: VerbMessages):
    """An older owner may not know it. Equal is enough: a number has another identity in each module."""
    parameters = verb.signature.parameters.values()
    defaults = {each.name: _equal(each.default) for each in parameters if each.default is not each.empty}
    assert not verb._beyond_defaults(defaults), f"{verb.name} says more than it must"


def test_notices_without_paging_are_asked_for_as_before_there_was_any():
    said = VERBS["notices"].encode(None, ["unread"], limit=int("1000"), offset=0)
    assert msgspec.json.decode(said) == {"thread": None, "states": ["unread"]}


def test_what_is_not_the_default_is_said():
    said = VERBS["notices"].encode(None, ["unread"], limit=7, offset=True)
    assert msgspec.json.decode(said) == {"thread": None, "states": ["unread"], "limit": 7, "offset": True}


def _equal(value: object) -> object:
    """The same value, where possible as another object."""
    if type(value) in (int, float, str) and not inspect.isclass(value):
        return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    return value
