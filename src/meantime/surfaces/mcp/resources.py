"""task://inbox and task://<id>: to look at. Looking settles nothing; the conversation is still told."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote

from meantime.kernel.errors import NotFound
from meantime.kernel.ids import crockford
from meantime.kernel.lifecycle import ACTIVE, ENDED
from meantime.toolset import task_text

from .client_conversation import LISTED, ClientConversation

SCHEME = "task://"
INBOX = SCHEME + "inbox"
TEMPLATE = SCHEME + "{id}"
TAIL, MOST = 100, 64_000


def uri(id: str) -> str:
    return SCHEME + quote(id, safe="")


def id_of(uri: str) -> str:
    """Raises NotFound for an address that does not name a task."""
    if not uri.startswith(SCHEME) or not uri[len(SCHEME) :]:
        raise NotFound(f"There is no resource {uri[:200]!r}.", hint=f"There are {INBOX} and {TEMPLATE}.")
    return unquote(uri[len(SCHEME) :])


async def listed(conversation: ClientConversation) -> list[tuple[str, str, str]]:
    """Address, name and description of each."""
    tasks = await conversation.tasks.list(conversation.thread, ACTIVE | ENDED, limit=LISTED)
    return [(INBOX, "inbox", "The notices that this conversation was not told yet.")] + [
        (uri(task.id), task.id, task_text.line(task, conversation.tasks.now())) for task in tasks
    ]


async def text(conversation: ClientConversation, uri: str) -> str:
    if uri == INBOX:
        dialect = conversation.toolset.dialect
        texts = [notice.message(dialect).text for notice in await conversation.unread()]
        return "\n\n".join(texts) or "Nothing is unread."
    task = await conversation.tasks.get(id_of(uri), conversation.thread)
    head = task_text.line(task, conversation.tasks.now())
    if task.work.kind == "shell":
        said = (await conversation.tasks.tail(task.id, conversation.thread, "both", TAIL, MOST)).text
    else:
        said = (await conversation.tasks.output(task.id, None)).text
    return f"{head}\n{task_text.fenced(said, crockford(os.urandom(8)))}" if said else head
