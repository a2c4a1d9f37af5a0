"""Model calls: every vendor's models through litellm, and the activity `agentmem.model`."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity

from activities.attempts import MODEL_FAILURES, FailureCount, Paid
from activities.heartbeat import time_left
from activities.http_exchange import HttpExchange, exchanging
from activities.llm_request import load, prepared, streamed, whole
from activities.messages import MessageCache
from agentmem.contracts import ModelCall, ModelReply, Usage
from agentmem.errors import ModelCallError
from agentmem.llm.context_size import Contexts, counted_tokens, is_cut, request_tokens
from agentmem.llm.error_evidence import Sent
from agentmem.llm.errors import is_limited, is_surely_too_long, model_call_error, not_admitted
from agentmem.llm.rate_limit import RateLimit, RateLimited
from agentmem.llm.request import render_request
from agentmem.llm.response import read_choice, read_reply, read_usage
from agentmem.llm.vendors import OLLAMA_CONTEXT, cut_hint, is_ollama, litellm_name
from agentmem.messages import Message, Role, ToolCall
from agentmem.wire import JSONObject, as_mapping, dump_json, objects

REQUEST_TIMEOUT = timedelta(minutes=9)
"""Below the activity's start-to-close of ten minutes, so that our error comes before Temporal's."""

_MARGIN = 2.0
"""Seconds before the end of an activity at which it gives up waiting: its error names the cause."""

logger = logging.getLogger(__name__)

_in_use: "set[Models]" = set()
"""litellm keeps its connections for the process, which may run more than one worker."""


class Models:
    """Every vendor's models, through litellm.

    litellm takes seconds to import (10 to 15 s on a slow machine): `start_loading` does it in a
    thread, and only a call that comes before the end of it waits.
    """

    def __init__(
        self,
        *,
        timeout: timedelta = REQUEST_TIMEOUT,
        ollama_context: int = OLLAMA_CONTEXT,
        rate: float = 0,
        dream_rate: float = 0,
    ) -> None:
        """Load nothing yet.

        Args:
            timeout: How long one request may take.
            ollama_context: Tokens of the context that Ollama's models get; 0 leaves it to Ollama.
            rate: Requests per second to one model that are never exceeded; 0 for no such bound.
            dream_rate: The same for the requests in the background, which count for both.
        """
        self._ollama_context = ollama_context
        self._timeout = timeout.total_seconds()
        self._rate = rate
        self._dream_rate = dream_rate
        self._limits: dict[str, RateLimit] = {}
        self._dream_limits: dict[str, RateLimit] = {}
        self._loading: Future[Any] | None = None
        self._contexts = Contexts()

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
        continues: bool = False,
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
            continues: A later request will begin with this one's messages, as in a conversation:
                Claude is asked to cache them.
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
        if background and self._dream_rate:
            await self._own_pace(model, deadline)
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                await limit.admission(
                    patience=left, background=background, again=refused is not None
                )
            except RateLimited as error:
                raise refused or not_admitted(model, error.seconds) from None
            try:
                with limit.refusals() as note:
                    try:
                        return await self._once(request, seconds, stream, continues)
                    except ModelCallError as error:
                        if is_limited(error):
                            note(error.next_retry_delay)
                        raise
            except ModelCallError as error:
                if not is_limited(error):
                    raise
                refused = error

    async def _own_pace(self, model: str, deadline: float) -> None:
        """Wait until the rate of dreams lets a request through; nobody refuses for this one."""
        limit = self._dream_limits.setdefault(model, RateLimit(model, most=self._dream_rate))
        try:
            await limit.admission(patience=deadline - asyncio.get_running_loop().time())
        except RateLimited as error:
            raise not_admitted(model, error.seconds) from None

    async def _once(
        self, request: JSONObject, seconds: float | None, stream: bool, continues: bool
    ) -> JSONObject:
        """Send one request."""
        model = str(request["model"])
        with exchanging() as exchange:
            try:
                litellm = await self._loaded()
                sent = prepared(
                    litellm, request, ollama_context=self._ollama_context, continues=continues
                )
                limit = self._timeout if seconds is None else seconds
                # The offline model answers at once, and has no pieces.
                if stream and not str(sent["model"]).startswith("agentmem/"):
                    reply = await streamed(litellm, sent, limit)
                else:
                    reply = await whole(litellm, sent, limit)
            except ModelCallError:
                raise
            except Exception as error:
                # Without the cause: it holds the provider's words, which may name a key.
                raise self._failed(error, request, exchange) from None
        self._contexts.passed(model, read_usage(reply).prompt)
        self._warn_of_a_cut(model, sent, reply)
        return reply

    def _warn_of_a_cut(self, model: str, sent: JSONObject, reply: JSONObject) -> None:
        usage = as_mapping(reply.get("usage"))
        if not is_cut(objects(sent.get("messages")), usage):
            return
        logger.warning(
            "the model %s read %d tokens only of a prompt that has far more: its provider cut the "
            "prompt without saying so. %s",
            model,
            counted_tokens(usage),
            cut_hint(model, self._ollama_context),
        )

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

        Of Ollama's models it is what they are asked for, if that is less. Nothing is waited for
        and nobody asked: 0 too as long as litellm is not imported.
        """
        known = self._listed_context(model)
        if self._ollama_context and is_ollama(model.partition("/")[0]):
            return min(known or self._ollama_context, self._ollama_context)
        return known

    def _listed_context(self, model: str) -> int:
        if self._loading is None or not self._loading.done() or self._loading.exception():
            return 0
        known: dict[str, dict[str, Any]] = self._loading.result().model_cost
        for name in (litellm_name(model), model.partition("/")[2]):
            size = known.get(name, {}).get("max_input_tokens")
            if isinstance(size, int):
                return size
        return 0

    def _failed(
        self, error: Exception, request: JSONObject, exchange: HttpExchange
    ) -> ModelCallError:
        model = str(request["model"])
        sent = Sent(
            # Clients of the user's own may send in ways that nobody watches.
            went_out=exchange.went_out or (None if self._is_custom(model) else False),
            status=exchange.status,
            body=exchange.body,
            headers=exchange.headers,
            tokens=request_tokens(request),
            context=self._contexts.of(model, self.context(model)),
            paid=self._paid(request, exchange),
        )
        now = datetime.now(UTC)
        failed = model_call_error(error, model=model, environ=os.environ, now=now, sent=sent)
        if is_surely_too_long(failed):
            self._contexts.refused(model, sent.tokens)
        return failed

    @staticmethod
    def _paid(request: JSONObject, exchange: HttpExchange) -> Usage:
        """Return what was written before a call failed; estimated where a stream broke."""
        if exchange.status != 200:
            return Usage()
        told = read_usage(exchange.unfinished or exchange.body)
        if told.prompt or told.completion:
            return told
        came = exchange.unfinished.get("choices")
        written = len(dump_json(came).encode("utf-8", "replace")) // 4 if came else 0
        prompt = request_tokens(request)
        return Usage(requests=1, prompt=prompt, completion=written) if came else Usage()

    def _is_custom(self, model: str) -> bool:
        if self._loading is None or not self._loading.done() or self._loading.exception():
            return False
        custom: list[JSONObject] = self._loading.result().custom_provider_map
        return model.partition("/")[0] in {str(entry["provider"]) for entry in custom}

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
        checked: Callable[[ToolCall], ToolCall] = lambda call: call,
    ) -> None:
        """Serve model calls.

        Args:
            models: Asks them.
            cache: The worker's messages.
            schemas: Gives the schemas of tools by name, in OpenAI's form.
            checked: Checks the arguments of a call that a person will be asked about.
        """
        self._models = models
        self._cache = cache
        self._schemas = schemas
        self._checked = checked

    @activity.defn(name="agentmem.model")
    async def model(self, call: ModelCall) -> ModelReply:
        """Ask a model, and keep its reply for the next prompt.

        Raises:
            ModelCallError: The call failed; says whether a retry can help, and when.
            AgentMemError: The workflow did not give its messages.
        """
        attempt, failures = activity.info().attempt, FailureCount(MODEL_FAILURES)
        paid = Paid(failures.counters)
        async with failures.counting():
            messages = await self._cache.resolve_prompt(call.prompt)
            schemas = self._schemas(call.tools)
            request = render_request(call, [*messages, *_missing(call, schemas)], schemas)
            try:
                reply = await self._models.complete(
                    request, seconds=call.seconds, stream=call.stream, continues=True
                )
                made = read_reply(reply, call, attempt=attempt)
            except ModelCallError as error:
                raise paid.told(error, call.budget) from None
            if any(asked.name in call.approve for asked in made.message.calls):
                # The check runs the user's validators, which may block.
                checked = await asyncio.to_thread(self._with_checks, made.message, call.approve)
                made = made.replace(message=checked)
        self._cache.remember(call.prompt.memory, made.message)
        return made.replace(paid=paid.usage, waited=failures.waited)

    def _with_checks(self, message: Message, approve: Sequence[str]) -> Message:
        calls = [
            self._checked(call) if call.name in approve and not call.problem else call
            for call in message.calls
        ]
        return message.replace(calls=calls) if calls != message.calls else message


def _missing(call: ModelCall, schemas: Sequence[JSONObject]) -> list[Message]:
    """Return what the model is told of tools of its agent that this worker does not have."""
    there = {schema["function"]["name"] for schema in schemas}
    missing = [name for name in call.tools if name not in there]
    if not missing:
        return []
    said = f"These tools are not available now, do not call them: {', '.join(missing)}."
    return [Message(id="m0", role=Role.SYSTEM, content=said)]
