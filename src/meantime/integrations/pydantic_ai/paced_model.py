"""A model that passes the gate at each request, and waits out its provider's troubles: nobody sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeAlias

from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from meantime.kernel.provider_errors import FAULT, RetryAdvice, judge, pause
from meantime.ports.clock import Clock, sleep
from meantime.ports.session import Hearer

TRIES = 30  # of one request, beside those that were too much at once: these are waited for
SILENCE = 120.0  # seconds without a byte, after which a request is given up and made again
ModelInput: TypeAlias = tuple[list[ModelMessage], ModelSettings | None, ModelRequestParameters]


class Stalled(Exception):
    """Nothing came for too long."""


def trouble(problem: BaseException) -> RetryAdvice | None:
    """The error as one that is worth another try; None for an error that would repeat."""
    if isinstance(problem, FallbackExceptionGroup):
        each = [trouble(one) for one in problem.exceptions]
        return each[-1] if all(each) else None
    if isinstance(problem, ModelQuotaExceededError):
        return None
    if isinstance(problem, Stalled | ConnectionError | TimeoutError) or _is_transport(problem):
        return FAULT  # a dropped connection that the client library did not translate
    text, after = str(problem), None
    if isinstance(problem, ModelAPIError):
        text = f"{text} {problem.provider_error_code or ''} {problem.provider_error_type or ''}"
        after = problem.retry_after
    verdict = judge(text, _status(problem), after=after)
    return verdict if verdict.passes else None


def _status(problem: BaseException) -> int:
    """That of the response, or the one that stands for what Pydantic AI makes of a provider without HTTP."""
    if isinstance(problem, ModelHTTPError):
        return problem.status_code
    if isinstance(problem, ModelRateLimitError):
        return 429
    return 503 if isinstance(problem, ModelUnavailableError | ModelServerError | ModelConnectionError) else 0


def _is_transport(problem: BaseException) -> bool:
    kinds = type(problem).__mro__
    return any(kind.__name__ == "TransportError" and kind.__module__.startswith("httpx") for kind in kinds)


class RequestState:
    """The state that one turn's requests share."""

    def __init__(
        self,
        hearer: Hearer,
        clock: Clock,
        before: Callable[[], object],
        native: Callable[[str], bool],
        options: dict[str, Any],
    ) -> None:
        self.hearer = hearer
        self.clock = clock
        self.before = before  # is called when a request is about to go out
        self.native = native  # which of the provider's own tools may be used
        self.silence = float(options.get("silence", SILENCE))
        self.streams = bool(options.get("stream", True))
        self.partial = ""  # what was said in a request that did not end


class PacedModel(WrapperModel):
    def __init__(self, wrapped: Model, request: RequestState) -> None:
        super().__init__(wrapped)
        self._shared = request

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        shared, parameters = self._shared, model_request_parameters
        if parameters.native_tools:
            allowed = [tool for tool in parameters.native_tools if shared.native(tool.kind)]
            parameters = replace(parameters, native_tools=allowed)
        shared.before()
        shared.partial = ""
        tries = 0
        while True:
            shared.hearer.phase("thinking")
            found = await self._try((messages, model_settings, parameters), last=tries >= TRIES)
            if isinstance(found, ModelResponse):
                shared.partial = ""
                return found
            tries += not found.limited
            shared.hearer.phase(f"waits for the provider (try {tries + 1})")
            if not found.limited:  # else the gate lets nobody in for so long
                await sleep(shared.clock, pause(tries - 1) if found.after is None else found.after)

    async def _try(self, asked: ModelInput, *, last: bool) -> ModelResponse | RetryAdvice:
        gate = self._shared.hearer.gate
        await gate.enter()
        found = FAULT
        try:
            with Silence(self._shared.clock, self._shared.silence) as silence:
                return await self._request(silence, asked)
        except Exception as problem:
            judged = trouble(problem)
            if judged is None or (last and not judged.limited):
                raise
            found = judged
        finally:
            gate.leave(limited=found.limited, retry_after=found.after)
        return found

    async def _request(self, silence: Silence, asked: ModelInput) -> ModelResponse:
        wrapped, shared = self.wrapped, self._shared
        if not shared.streams or getattr(wrapped, "stream_function", wrapped) is None:
            return await wrapped.request(*asked)
        said = ""
        async with wrapped.request_stream(*asked) as stream:
            async for event in stream:
                silence.broken()
                piece = _piece(event)
                said += piece
                self._say(said) if piece else shared.hearer.alive()
            return stream.get()

    def _say(self, said: str) -> None:
        """A second try mostly says the same again: what was said already is not said twice."""
        shown = self._shared.partial
        if shown.startswith(said):
            return
        self._shared.hearer.said(said.removeprefix(shown) if said.startswith(shown) else f"\n{said}")
        self._shared.partial = said

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """For an agent whose own capabilities want events: they come when the response is whole."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(
            response, model_request_parameters=model_request_parameters, replay_events=True
        )


class Silence:
    """Raises Stalled in the block if it is not broken for so long."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._since = clock.monotonic()
        self._too_long = False

    def broken(self) -> None:
        self._since = self._clock.monotonic()

    def __enter__(self) -> Silence:
        self._task = asyncio.current_task()
        self._alarm = self._clock.call_later(self._seconds, self._look)
        return self

    def _look(self) -> None:
        left = self._seconds - (self._clock.monotonic() - self._since)
        if left > 1e-3:
            self._alarm = self._clock.call_later(left, self._look)
        elif self._task is not None:
            self._too_long = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alarm.cancel()
        if not self._too_long or self._task is None:
            return
        if self._task.uncancel() == 0 and kind is asyncio.CancelledError:  # nobody else wants us to stop
            raise Stalled(f"Nothing came for {self._seconds:g} seconds.") from problem


def _piece(event: object) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
