"""The rules of tools/check_prose.py: phrases that read like a translation, and what to write instead."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """One phrase. `bad` and `good` are its examples: the tests find the first, and not the second."""

    name: str
    pattern: re.Pattern[str]
    advice: str
    bad: str
    good: str


def _rule(name: str, pattern: str, advice: str, bad: str, good: str) -> Rule:
    return Rule(name, re.compile(pattern), advice, bad, good)


_PLACE = r"(?:in|on|at|there|beside|before|below|above|under|between|behind)"
_CLAUSE = r"(?:when|if|where|while|after|before|what|those|in|on|at|by|for|to|from|with|an?|the|one)"

RULES = (
    _rule(
        "subject first",
        r"^(?:What|Whatever|Whoever|Whose|Who|Those|Of(?! course))\b(?!.*\?)",
        "begin with the subject, a noun",
        "What comes later is kept.",
        "A late result is kept.",
    ),
    _rule(
        "of first",
        r"[;:] (?:and )?of (?:it|them|what|each|those|these)\b",
        "begin the clause with its subject",
        "Nothing is lost; of what you set, the names are kept.",
        "Nothing is lost; only the names of variables are kept.",
    ),
    _rule(
        "participle first",
        r"^(?:[A-Z][a-z]+ed|Said|Told|Kept|Meant|Heard|Left|Shown|Found|Known|Taken|Given)"
        r"(?: for| of| at)? (?:is|are)\b",
        "begin with the subject, a noun",
        "Looked for is the id.",
        "The id is looked up.",
    ),
    _rule(
        "even when",
        rf"(?:, (?:and )?also {_CLAUSE}|^Also (?!an?\b|the\b){_CLAUSE})\b"
        r"|\balso (?:when|if|while|what|where)\b",
        "write `even when`, `even if`, or `including`",
        "It is answered, also when the turn is over.",
        "It is answered even when the turn is over.",
    ),
    _rule(
        "is not a",
        r"(?<![Tt]here )\b(?:is|are|was|were) no (?=\w)"
        r"(?!(?:limit|longer|more|one|such|other|older|newer|later|larger|better)\b)"
        r"|\b(?:that|which|who) (?:is|are) none\b",
        "write `is not a`",
        "A warning is no failure.",
        "A warning is not a failure, and there is no other.",
    ),
    _rule(
        "otherwise",
        r"^Else\b|[,;:(] ?else\b",
        "write `otherwise`, or `or`",
        "The file is `code`, else `code`.",
        "The file is the first of these that exists; nothing else is read.",
    ),
    _rule(
        "otherwise identical",
        r"\bthe same for (?:all|every|everybody|everyone)\b",
        "write `otherwise identical`, or name what is shared",
        "It is the same for all.",
        "All hosts share it.",
    ),
    _rule(
        "released",
        r"\b(?:is|are|was|were|be|been|being) let go\b|\blets? (?:it|them|him) go\b",
        "write `released`, `closed` or `disconnected`",
        "Slow clients are let go.",
        "Slow clients are disconnected.",
    ),
    _rule(
        "loop",
        r"\b(?:go|goes|going|went|gone) round\b|\bin a circle\b",
        "write `loops`, `repeats` or `is passed on`",
        "A thread that goes round is slowed.",
        "A thread that keeps waking itself is slowed.",
    ),
    _rule(
        "no hearing",
        r"\b(?:[Ee]ars?|[Hh]ears?|[Hh]earing|(?:un|over)?[Hh]eard)\b",
        "say what the code does: receives, reads, is told, is notified",
        "The owner has heard it.",
        "The owner has received it.",
    ),
    _rule(
        "no hands",
        r"\b(?:its|our|their|the|his|your|whose|other|two|many|no|others'|my|safe|foreign) hands\b"
        r"|\b(?:in|into|from|out of|through) hands?\b",
        "say what the code does: holds, owns, receives",
        "The file is in its hands.",
        "Its owner hands work off, and edits the file by hand.",
    ),
    _rule(
        "retried",
        r"\binsist(?:s|ed|ing)? (?:on|that)\b",
        "write `is retried until`, or `requires`",
        "An ending is insisted on.",
        "An ending is retried until it is written.",
    ),
    _rule(
        "reported",
        r"\b(?:is|are) said\b(?! to\b)",
        "write `is reported`, `is logged`, `is sent` or `is shown`",
        "Every gap is said on stderr.",
        "Every gap is reported on stderr.",
    ),
    _rule(
        "is in",
        rf"\b(?:stands|lies|lie|lay) {_PLACE}\b|\b(?:it|they|that|which) stand {_PLACE}\b",
        "write `is` or `are`",
        "The SQL lies in one file.",
        "The SQL is in one file.",
    ),
    _rule(
        "anyway",
        r"\banyhow\b|\bheed(?:s|ed)?\b|\b(?:is|are) none of (?:ours|its|theirs)\b|\bof another make\b",
        "use the common word: `anyway`, `honoured`, `not ours`",
        "NO_COLOR is heeded anyhow.",
        "NO_COLOR is honoured anyway.",
    ),
    _rule(
        "continues",
        r"\b(?:is|are|was|were) (?:gone on with|gone on|taken up again|spoken to)\b|\bin spite of it\b",
        "write `is continued`, `is resumed` or `receives messages`",
        "Sessions are gone on with.",
        "Sessions are continued.",
    ),
    _rule(
        "server",
        r"\b[Dd]oors?\b",
        "write `server`, `interface` or `the HTTP API`",
        "The door on a port is closed.",
        "The HTTP server is closed, and HttpDoor is the name of its class.",
    ),
    _rule(
        "package",
        r"\b(?:[Tt]he|its|each|every|other|these|two) rooms?\b|\brooms (?:that|below)\b|\b[Tt]he heart\b",
        "write `package`, `module` or `runtime`",
        "The rooms that hold the promises are tested.",
        "The packages that hold the promises are tested; make room on the disk.",
    ),
    _rule(
        "adopts",
        r"\b(?:take|takes|took|taken|taking) (?:it |them |those )?up\b(?! (?:to|room|space|time)\b)",
        "write `adopts`, `resumes` or `follows`",
        "The next owner takes them up.",
        "The next owner adopts them.",
    ),
    _rule(
        "keeps running",
        r"\b(?:[Cc]ommands?|[Ff]unctions?|[Tt]asks?|[Tt]urns?|[Aa]gents?|[Rr]un|[Ww]ork|they|which)"
        r" (?:go|goes|went) on\b",
        "write `keeps running` or `continues`",
        "Commands go on.",
        "Commands keep running.",
    ),
)
