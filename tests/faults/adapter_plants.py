"""Bugs that a careless hand could make in an adapter. Each must be caught."""

from __future__ import annotations

from typing import Any


def ack_before_save(adapter: str) -> None:
    """Notices are acknowledged before the conversation holds them."""
    from meantime.integrations.framework_talk.framework_talk import FrameworkTalk

    async def take_all(self: Any, turn: Any, text: Any, run: dict[str, Any]) -> Any:
        self._tools.verbs.begin(turn)
        fresh = turn.fresh(await self._told())
        await self._settle(turn)
        if text is not None or fresh or await self._unanswered():
            return await self._take(turn, fresh, text, run)
        return None

    FrameworkTalk._take_all = take_all  # type: ignore[method-assign]


def save_without_id(adapter: str) -> None:
    """A conversation that is looked into does not say what was told."""
    if adapter == "langchain":
        from meantime.integrations.langchain import background_middleware, langchain_talk

        def nameless(notices: Any) -> Any:
            from langchain.messages import HumanMessage  # pyright: ignore[reportMissingImports]

            return [HumanMessage(notice.message().text) for notice in notices]

        langchain_talk.told = background_middleware.told = nameless  # type: ignore[assignment]
    else:
        from meantime.integrations.framework_talk import framework_talk

        async def forgets(self: Any) -> Any:
            await _told[type(self)](self)
            return ()

        _told = {kind: kind._told for kind in framework_talk.FrameworkTalk.__subclasses__()}
        for kind in _told:
            kind._told = forgets  # type: ignore[method-assign]


def told_newest_first(adapter: str) -> None:
    """The notices of a turn are told in the order in which one would read a stack."""
    from meantime.conversation.turn import Turn

    fresh = Turn.fresh

    def reversed_fresh(self: Turn, known: Any = ()) -> Any:
        return list(reversed(fresh(self, known)))

    Turn.fresh = reversed_fresh  # type: ignore[method-assign]


PLANTS = {
    "ack_before_save": "lost",
    "save_without_id": "doubled",
    "told_newest_first": "misordered",
}
