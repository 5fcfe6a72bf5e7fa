"""The one translator of msgspec's refusals: data that does not fit its struct becomes an error of ours.

    with mismatch_raises(lambda mismatch: InvalidInput(f"The body is not right: {mismatch.text}.")):
        return msgspec.convert(value, kind)

The caller words the error, because only it knows what people call the data. The text is short and printable
here, since msgspec quotes names of fields as they were given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from .errors import MeantimeError
from .plain_text import cut, escape_surrogates

MOST_TEXT = 500  # characters
_FIELD = re.compile(r"`\$\.(\w+)")  # how msgspec ends what it says: " - at `$.status`"


class Mismatch(NamedTuple):
    text: str  # msgspec's own words
    field: str  # of the outermost struct, as the wire names it; "" where the value as a whole is wrong
    is_type: bool  # its type is wrong; otherwise a constraint, or a field that is missing or unknown
    is_unknown: bool  # a field that the struct does not have


@contextmanager
def mismatch_raises(error: Callable[[Mismatch], MeantimeError]) -> Generator[None]:
    try:
        yield
    except msgspec.ValidationError as problem:
        raise error(_mismatch(str(problem))) from None
    except UnicodeEncodeError:  # msgspec looks a field up by the UTF-8 of its name
        raise error(Mismatch("a name holds a lone surrogate", "", False, False)) from None


def _mismatch(said: str) -> Mismatch:
    field = _FIELD.search(said)
    text = cut(escape_surrogates(said), MOST_TEXT)
    return Mismatch(text, field[1] if field else "", ", got `" in said, "unknown field" in said)
