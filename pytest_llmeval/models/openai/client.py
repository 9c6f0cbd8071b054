"""One question to an endpoint: put, put again where that may help, and read."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import LETTER_DECODING
from pytest_llmeval.core import Ask
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.usage import Price
from pytest_llmeval.core.usage import TokenUsage
from pytest_llmeval.core.usage import Usage
from pytest_llmeval.models.openai import faults
from pytest_llmeval.models.openai import payloads
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.dialect import adapted
from pytest_llmeval.models.openai.dialect import way_out
from pytest_llmeval.models.openai.echo_logprobs import PROBE
from pytest_llmeval.models.openai.echo_logprobs import check_probe
from pytest_llmeval.models.openai.echo_logprobs import read_echoes
from pytest_llmeval.models.openai.echo_logprobs import unusable
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.faults import StopRule
from pytest_llmeval.models.openai.faults import of_connection
from pytest_llmeval.models.openai.limits import Budget
from pytest_llmeval.models.openai.limits import Limiter
from pytest_llmeval.models.openai.payloads import Call
from pytest_llmeval.models.openai.spec import Secret
from pytest_llmeval.models.openai.spec import Spec
from pytest_llmeval.models.openai.top_logprobs import are_letters
from pytest_llmeval.models.openai.top_logprobs import read_letters

# TokenUsage that a character of a prompt is taken for until the server has told.
_TOKENS_PER_CHARACTER = 0.3
# How long the others wait for what the first request of a kind finds out: it may hang.
_FIRST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer is waited for, in seconds, and how often it is asked for again.

    ``timeout`` is for one HTTP request, ``in_all`` for all of an item's, waiting between them
    included. A Retry-After beyond ``longest_wait`` is cut to it, and one below the own wait, which
    doubles from ``first_wait``, does not shorten it: many retries within a moment help no server.
    """

    timeout: float = 300.0
    max_retries: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0

    @property
    def in_all(self) -> float:
        return 3 * self.timeout + self.longest_wait

    def wait(self, retry: int, wanted: float | None) -> float:
        """Seconds before a retry (counted from 0): doubling, and no less than the server wants.

        Part of it is random, so that requests that failed together do not return together.
        """
        longest = min(self.first_wait * 2**retry, self.longest_wait)
        own = random.uniform(longest / 2, longest)
        if wanted is None:
            return own
        return max(own, min(wanted, self.longest_wait) + random.uniform(0, self.first_wait))


class Client:
    """Answers requests, a group at a time. Everything runs within one event loop.

    ``told`` hears of every HTTP request: True for an answer, False for a server that has too
    much to do. ``usage`` is what has been used so far, by benchmark; ``names`` are those under
    which replies came, which may differ from the one in the request (a date, an alias).
    """

    def __init__(
        self,
        spec: Spec,
        key: Secret,
        *,
        patience: Patience,
        limiter: Limiter,
        told: Callable[[bool], None],
        price: Price | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        self.names: set[str] = set()
        self._spec = spec
        self._key = key
        self._patience = patience
        self._limiter = limiter
        self._price = price or Price(0.0, 0.0)
        self._budget = budget or Budget()
        self._told = told
        self._dialect = Dialect()
        self._stop_rule = StopRule()
        self._sdk: Any = None
        self._first: dict[Ask, asyncio.Event] = {}
        self._probing = asyncio.Lock()
        #: Why echoes cannot be used; None before it is known.
        self._unusable: str | None = None
        self._tokens_per_character = _TOKENS_PER_CHARACTER

    @property
    def takes_several(self) -> bool:
        """Whether one HTTP request may ask for several samples, as far as is known."""
        return self._dialect.several

    async def close(self) -> None:
        """Close all connections."""
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None

    async def answer(self, group: Sequence[Request]) -> list[Response]:
        """A response for each of the requests, which differ in ``sample`` alone.

        A request that fails for good has a response with ``error``. Raises ModelError after many
        failures of the same kind in a row, and SpendLimitError if these exceed the limit.
        """
        started = time.perf_counter()
        try:
            responses = await self._after_the_first(group)
        except RequestFailedError as failed:
            responses = self._without_reply(group, failed.fault)
        else:
            self._stop_rule.succeeded()
        seconds = (time.perf_counter() - started) / len(group)
        return [
            replace(response, sample=request.sample, arm=request.arm, seconds=seconds)
            for request, response in zip(group, responses, strict=True)
        ]

    def _without_reply(self, group: Sequence[Request], fault: Fault) -> list[Response]:
        """The responses to requests that failed for good: errors, or replies without a text."""
        if fault.finish_reason is not None:
            self._stop_rule.succeeded()
            ended = Response("", text="", finish_reason=fault.finish_reason)
            return [replace(ended, id=request.id) for request in group]
        self.usage[group[0].benchmark].failed += len(group)
        if self._stop_rule.failed(fault):
            raise ModelError(
                f"{self._stop_rule.limit} requests in a row failed in the same way; the last:"
                f" {fault.message}"
            ) from None
        return [Response(request.id, error=fault.message) for request in group]

    async def _after_the_first(self, group: Sequence[Request]) -> list[Response]:
        """The first request of a kind goes alone: what it finds out spares the others a refusal."""
        ask = group[0].ask
        if ask in self._first:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_SECONDS):
                    await self._first[ask].wait()
            return await self._answer(group)
        self._first[ask] = asyncio.Event()
        try:
            return await self._answer(group)
        finally:
            self._first[ask].set()

    async def _answer(self, group: Sequence[Request]) -> list[Response]:
        if group[0].ask == "text":
            return await self._texts(group)
        if self._spec.choices == "echo":
            return [await self._echo(group[0])]
        return [await self._letter(group[0])]

    # --- the ways of asking

    async def _texts(self, group: Sequence[Request]) -> list[Response]:
        first = group[0]
        call, data = await self._call(
            first.benchmark, lambda dialect: payloads.generation(self._spec, group, dialect)
        )
        said = payloads.texts(self._spec, data, first.decoding.stop)[: len(group)]
        if "stop" in call.body and any(one.only_reasoning for one in said):
            # The server may have found a stop string within the thought.
            self._leave_out("stop")
            return await self._texts(group)
        if not data["choices"]:
            said *= len(group)
        if len(said) < call.body.get("n", 1):
            # It took the parameter and did not do what it says.
            self._dialect = replace(self._dialect, several=False)
        tokens = payloads.tokens(data)
        responses = [
            Response(
                request.id,
                text=one.text,
                reasoning=one.reasoning,
                finish_reason=one.finish_reason,
                prompt_tokens=tokens.prompt,
                completion_tokens=_part(tokens.completion, len(said), number),
            )
            for number, (request, one) in enumerate(zip(group, said, strict=False))
        ]
        for request in group[len(responses) :]:
            responses += await self._texts([request])
        return responses

    async def _letter(self, request: Request) -> Response:
        if not are_letters(request.choices):
            raise RequestFailedError(
                Fault(
                    "no letters",
                    "choices=top_logprobs reads letters, and these choices are texts: use"
                    " choices=echo, if the server can",
                )
            )
        call, data = await self._call(
            request.benchmark, lambda dialect: payloads.next_letter(self._spec, request, dialect)
        )
        tokens = payloads.tokens(data)
        if payloads.is_filtered(data):
            return Response(request.id, text="", finish_reason=payloads.FILTERED)
        requested = call.body.get("top_logprobs") or call.body["logprobs"]
        try:
            top = payloads.top_tokens(data, requested)
        except ValueError as error:
            raise RequestFailedError(Fault("top_logprobs", f"top_logprobs: {error}")) from None
        if top is None:
            raise RequestFailedError(
                Fault(
                    "no top_logprobs",
                    "the server tells no top_logprobs: leave choices=top_logprobs out, and the"
                    " letter is generated",
                )
            )
        reading = read_letters(request.choices, top)
        if not reading.decided:
            # The letter that comes first may be one that was not told: the text decides.
            asked = replace(request, choices=(), decoding=LETTER_DECODING)
            return (await self._texts([asked]))[0]
        return Response(
            request.id,
            logprobs=reading.logprobs,
            prompt_tokens=tokens.prompt,
            completion_tokens=tokens.completion,
        )

    async def _echo(self, request: Request) -> Response:
        async with self._probing:
            if self._unusable is None:
                self._unusable = await self._probe_echo(request.benchmark)
        if self._unusable:
            raise ModelError(self._unusable)
        _, data = await self._call(request.benchmark, lambda _: payloads.echo(self._spec, request))
        try:
            logprobs = tuple(echo.logprob for echo in read_echoes(request, data))
        except ValueError as error:
            raise RequestFailedError(Fault("echo", f"choices=echo: {error}")) from None
        return Response(request.id, logprobs=logprobs, prompt_tokens=payloads.tokens(data).prompt)

    async def _probe_echo(self, benchmark: str) -> str:
        """Verify what the server echoes. Returns why it cannot be used, or ""."""
        call = payloads.echo(self._spec, PROBE)
        try:
            _, data = await self._call(benchmark, lambda _: call)
            check_probe(data)
        except RequestFailedError as failed:
            return unusable(failed.fault.message, refused=payloads.refuses_echo(call, failed.fault))
        except ValueError as error:
            return unusable(f"the server returned {error}")
        return ""

    def _leave_out(self, name: str) -> None:
        left_out = self._dialect.left_out | {name}
        self._dialect = replace(self._dialect, left_out=left_out)

    # --- one HTTP request, and again

    async def _call(
        self, benchmark: str, build: Callable[[Dialect], Call]
    ) -> tuple[Call, dict[str, Any]]:
        """The answer to what ``build`` makes of the dialect, after as many tries as it takes.

        Raises RequestFailedError with the last fault.
        """
        patience, usage = self._patience, self.usage[benchmark]
        until = time.monotonic() + patience.in_all
        retries = 0
        while True:
            dialect = self._dialect
            call = build(dialect)
            call = replace(call, body=dialect.spoken(call.body))
            expected = self._expected_tokens(call)
            cost = self._price.of(expected.prompt or 0, expected.completion or 0)
            began = time.monotonic()
            await self._budget.admitted(cost)
            usage.waited += await self._limiter.admitted(_total(expected))
            until += time.monotonic() - began
            usage.requests += 1
            used = TokenUsage(0, 0)
            try:
                data = await self._send(call, min(patience.timeout, until - time.monotonic()))
                used = self._used(call, data, expected)
            except RequestFailedError as failed:
                fault = failed.fault
            else:
                self._told(True)
                usage.add(payloads.tokens(data))
                if isinstance(name := data.get("model"), str) and name:
                    self.names.add(name)
                return call, data
            finally:
                self._limiter.used(_total(expected), _total(used))
                self._budget.settle(
                    cost, self._price.of(used.prompt or 0, used.completion or 0, used.cached)
                )
            other = adapted(dialect, call.body, fault)
            if other is not None:
                # Others may have found out in the meantime.
                self._dialect = other if self._dialect == dialect else self._dialect
                continue
            if fault.overload:
                self._told(False)
            wait = patience.wait(retries, fault.retry_after)
            if (
                not fault.retryable
                or payloads.refuses_echo(call, fault)
                or retries == patience.max_retries
                or time.monotonic() + wait >= until
            ):
                raise RequestFailedError(_explained(fault, retries + 1, way_out(call.body, fault)))
            retries += 1
            usage.retries += 1
            await asyncio.sleep(wait)

    async def _send(self, call: Call, seconds: float) -> dict[str, Any]:
        import openai

        if self._sdk is None:
            self._sdk = self._connect()
        fault: Fault
        try:
            # The SDK's own time-out starts anew with every piece of an answer that arrives.
            async with asyncio.timeout(seconds):
                data = await self._sdk.post(call.path, cast_to=object, body=call.body)
            if isinstance(data, dict) and data.get("error") and not data.get("choices"):
                fault = faults.of_body(data["error"])
            else:
                return payloads.check(data)
        except RequestFailedError as failed:
            fault = failed.fault
        except TimeoutError:
            fault = faults.timed_out(round(seconds, 1))
        except openai.APIStatusError as error:
            fault = faults.of_status(error.status_code, error.body, error.response.headers)
        except ValueError as error:
            fault = faults.unreadable(f"{type(error).__name__}: {error}")
        except Exception as error:
            origin = _origin(error)
            timed_out = isinstance(origin, TimeoutError) or "Timeout" in type(origin).__name__
            fault = faults.timed_out(round(seconds, 1)) if timed_out else of_connection(origin)
        # Outside of the except clauses, so that nothing of the SDK hangs on what is raised.
        raise RequestFailedError(fault.without(self._key))

    def _connect(self) -> Any:
        import openai

        http_client = None
        if hasattr(openai, "DefaultAioHttpClient"):
            try:
                # About twice as fast as httpx where many requests are in flight.
                http_client = openai.DefaultAioHttpClient()
            except RuntimeError:  # its package is not installed
                http_client = None
        return openai.AsyncOpenAI(
            # The SDK insists on a key; servers that want none do not look at it.
            api_key=self._key.reveal() or "none",
            base_url=self._spec.base_url,
            timeout=self._patience.timeout,
            max_retries=0,
            http_client=http_client,
        )

    def _expected_tokens(self, call: Call) -> TokenUsage:
        """The most that a request is expected to use; nothing where nobody counts."""
        if not (self._limiter.counts_tokens or self._budget.is_limited):
            return TokenUsage(0, 0)
        answer = call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 0
        prompt = _characters(call) * self._tokens_per_character
        return TokenUsage(math.ceil(prompt), answer * call.body.get("n", 1))

    def _used(self, call: Call, data: dict[str, Any], expected: TokenUsage) -> TokenUsage:
        """What the server says it used; what was expected where it does not say."""
        tokens = payloads.tokens(data)
        if tokens.prompt is None:
            return expected
        self._tokens_per_character = tokens.prompt / max(_characters(call), 1)
        return tokens


def _total(tokens: TokenUsage) -> int:
    return (tokens.prompt or 0) + (tokens.completion or 0)


def _characters(call: Call) -> int:
    body = call.body
    if "messages" in body:
        return sum(len(message["content"]) for message in body["messages"])
    prompt = body["prompt"]
    return len(prompt) if isinstance(prompt, str) else sum(map(len, prompt))


def _origin(error: BaseException) -> BaseException:
    """What an exception was first. On its way here a refused connection may become a time-out."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _part(total: int | None, parts: int, number: int) -> int | None:
    """One part of a count that the server tells for all samples together."""
    return None if total is None else total // parts + (number < total % parts)


def _explained(fault: Fault, attempts: int, advice: str) -> Fault:
    """The fault whose message has how often the request was sent, and what the user can do."""
    message = fault.message if attempts == 1 else f"{fault.message} (after {attempts} attempts)"
    return replace(fault, message=f"{message}; {advice}" if advice else message)
