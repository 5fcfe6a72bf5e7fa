"""Our own texts for an agent, as opposed to its starter's."""

LAST_TURN = (
    "{reason} Do not call any more tools. Hand in now, in one message, what you have so far: what is done, "
    "what you found, and what is left to do."
)
WARNING = "Note of the runtime: {text}. Come to an end in time."
ANSWERED = "You were interrupted while you waited for an answer. {question}\nThe answer: {answer}\nGo on."
REFUSED = (
    "You were interrupted while you waited for an answer. {question}\nIt was refused. {answer}\n"
    "Go on without it, if you can."
)
