"""Model calls: every vendor's models through litellm, and the activity `agentmem.model`."""

import asyncio
import os
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity

from activities.heartbeat import heartbeating, time_left
from activities.litellm_loading import load
from activities.messages import MessageCache
from activities.sending import prepared, streamed, whole
from agentmem.contracts import ModelCall, ModelReply
from agentmem.errors import ModelCallError
from agentmem.models.failures import model_call_error
from agentmem.models.rates import RateLimit, RateLimited
from agentmem.models.rendering import render_request
from agentmem.models.replies import read_choice, read_reply
from agentmem.models.vendors import litellm_name
from agentmem.models.waits import next_wait
from agentmem.values import JSONObject

REQUEST_TIMEOUT = timedelta(minutes=9)
"""Below the activity's start-to-close of ten minutes, so that our error comes before Temporal's."""

_MARGIN = 2.0
"""Seconds before the end of an activity at which it gives up waiting: its error names the cause."""

_in_use: "set[Models]" = set()
"""litellm keeps its connections for the process, which may run more than one worker."""


class Models:
    """Every vendor's models, through litellm.

    litellm takes seconds to import (10 to 15 s on a slow machine): `start_loading` does it in a
    thread, and only a call that comes before the end of it waits.
    """

    def __init__(self, *, timeout: timedelta = REQUEST_TIMEOUT, rate: float = 0) -> None:
        """Load nothing yet.

        Args:
            timeout: How long one request may take.
            rate: Requests per second to one model that are never exceeded; 0 for no such bound.
        """
        self._timeout = timeout.total_seconds()
        self._rate = rate
        self._limits: dict[str, RateLimit] = {}
        self._loading: Future[Any] | None = None

    def start_loading(self) -> None:
        """Import litellm in a thread; more calls change nothing."""
        if self._loading is None:
            self._loading = Future()
            _in_use.add(self)
            # A future that runs cannot be cancelled by a caller that no longer waits for it.
            self._loading.set_running_or_notify_cancel()
            thread = threading.Thread(target=load, args=(self._loading,), daemon=True)
            thread.start()

    async def complete(
        self,
        request: JSONObject,
        *,
        seconds: float | None = None,
        stream: bool = False,
        background: bool = False,
    ) -> JSONObject:
        """Ask a model, when its provider's limit of requests per second lets it.

        A request that is refused for the rate alone waits its turn again, in an activity for as
        long as that has time; nothing else is retried here.

        Args:
            request: `model` as litellm names it, `messages`, and what else OpenAI's chat
                completions take; what a vendor does not know is left out, tools excepted.
            seconds: How long the reply may take, each piece of it with `stream`.
            stream: Read the reply piece by piece; what comes back is the same.
            background: Let the requests of turns go first.

        Returns:
            The reply as plain JSON in OpenAI's form; `usage` has the `cost` in US dollars, where
            litellm knows the price. Cancelling the wait closes the connection.

        Raises:
            ModelCallError: The call failed; says whether a retry can help.
        """
        model = str(request["model"])
        limit = self._limits.setdefault(model, RateLimit(model, most=self._rate))
        deadline = asyncio.get_running_loop().time() + time_left(self._timeout) - _MARGIN
        refused: ModelCallError | None = None
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                await limit.admission(
                    patience=left, background=background, again=refused is not None
                )
            except RateLimited as error:
                raise refused or _not_admitted(model, error.seconds) from None
            try:
                with limit.refusals() as note:
                    try:
                        return await self._once(request, seconds, stream=stream)
                    except ModelCallError as error:
                        if error.limited:
                            note(error.next_retry_delay)
                        raise
            except ModelCallError as error:
                if not error.limited:
                    raise
                refused = error

    async def _once(
        self, request: JSONObject, seconds: float | None, *, stream: bool
    ) -> JSONObject:
        """Send one request."""
        model = str(request["model"])
        try:
            litellm = await self._loaded()
            sent = prepared(litellm, request)
            limit = self._timeout if seconds is None else seconds
            # The offline model answers at once, and has no pieces.
            if stream and not str(sent["model"]).startswith("agentmem/"):
                return await streamed(litellm, sent, limit)
            return await whole(litellm, sent, limit)
        except ModelCallError:
            raise
        except Exception as error:
            now = datetime.now(UTC)
            # Without the cause: it holds the provider's words, which may name a key.
            raise model_call_error(error, model=model, environ=os.environ, now=now) from None

    async def ask(self, request: JSONObject) -> JSONObject:
        """Ask a model for a dream: as `complete` does, in the background.

        Returns:
            `message`: the assistant's message in OpenAI's form; `finish`: stop, tool_calls,
            length or content_filter; `usage`: the fields of `Usage`.

        Raises:
            ModelCallError: The call failed, or the reply holds no message.
        """
        reply = await self.complete(request, background=True)
        choice = read_choice(reply, model=str(request["model"]))
        usage = choice.usage.model_dump(mode="json")
        return {"message": choice.message, "finish": choice.finish, "usage": usage}

    def context(self, model: str) -> int:
        """Return the tokens of a model's context, by litellm's own list; 0 if it knows none.

        Nothing is waited for and nobody asked: 0 too as long as litellm is not imported.
        """
        if self._loading is None or not self._loading.done() or self._loading.exception():
            return 0
        known: dict[str, dict[str, Any]] = self._loading.result().model_cost
        for name in (litellm_name(model), model.partition("/")[2]):
            size = known.get(name, {}).get("max_input_tokens")
            if isinstance(size, int):
                return size
        return 0

    async def close(self) -> None:
        """Close litellm's connections, when the last worker of the process stops."""
        if self in _in_use:
            _in_use.remove(self)
            loading = self._loading
            if not _in_use and loading and loading.done() and loading.exception() is None:
                litellm = loading.result()
                await litellm.close_litellm_async_clients()
                # litellm would use them again: it does not see that they are closed.
                litellm.in_memory_llm_clients_cache.flush_cache()

    async def _loaded(self) -> Any:
        self.start_loading()
        assert self._loading is not None
        return await asyncio.wrap_future(self._loading)


class ModelActivity:
    """The activity `agentmem.model`."""

    def __init__(
        self,
        models: Models,
        cache: MessageCache,
        schemas: Callable[[Sequence[str]], list[JSONObject]],
    ) -> None:
        """Serve model calls.

        Args:
            models: Asks them.
            cache: The worker's messages.
            schemas: Gives the schemas of tools by name, in OpenAI's form.
        """
        self._models = models
        self._cache = cache
        self._schemas = schemas

    @activity.defn(name="agentmem.model")
    async def model(self, call: ModelCall) -> ModelReply:
        """Ask a model, and keep its reply for the next prompt.

        Raises:
            ModelCallError: The call failed; says whether a retry can help, and when.
            AgentMemError: The workflow did not give its messages.
        """
        async with heartbeating():
            messages = await self._cache.resolve_prompt(call.prompt)
            request = render_request(call, messages, self._schemas(call.tools))
            try:
                reply = await self._models.complete(
                    request, seconds=call.seconds, stream=call.stream
                )
            except ModelCallError as error:
                raise _spread(error, activity.info().attempt) from None
            made = read_reply(reply, call, attempt=activity.info().attempt)
        self._cache.remember(call.prompt.memory, made.message)
        return made


def _spread(error: ModelCallError, attempt: int) -> ModelCallError:
    if error.non_retryable:
        return error
    wait = next_wait(error.next_retry_delay, attempt, random.random)
    return ModelCallError(error.message, next_retry_delay=wait)


def _not_admitted(model: str, seconds: float) -> ModelCallError:
    why = f"it wants no request for {seconds:.0f} s" if seconds else "too many requests wait for it"
    return ModelCallError(
        f"the model {model} limits the rate of requests: {why}. A higher limit at the provider, "
        "fewer sessions at a time or another model help",
        next_retry_delay=timedelta(seconds=seconds) if seconds else None,
    )
