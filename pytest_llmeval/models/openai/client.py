"""Client of an endpoint: sends requests, retries them, and reads the replies."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Mapping
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
from pytest_llmeval.models.openai import payloads
from pytest_llmeval.models.openai.connection import EndpointConnection
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.dialect import adapt_dialect
from pytest_llmeval.models.openai.dialect import suggest_fix
from pytest_llmeval.models.openai.echo_logprobs import PROBE
from pytest_llmeval.models.openai.echo_logprobs import check_probe
from pytest_llmeval.models.openai.echo_logprobs import echo_error
from pytest_llmeval.models.openai.echo_logprobs import read_echoes
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.faults import StopRule
from pytest_llmeval.models.openai.limits import Budget
from pytest_llmeval.models.openai.limits import RateLimiter
from pytest_llmeval.models.openai.payloads import Call
from pytest_llmeval.models.openai.spec import EndpointSpec
from pytest_llmeval.models.openai.spec import Secret
from pytest_llmeval.models.openai.top_logprobs import are_letters
from pytest_llmeval.models.openai.top_logprobs import read_letters

# Estimated tokens per character of a prompt until the server has reported its count.
_TOKENS_PER_CHARACTER = 0.3
# Maximum seconds for which other requests wait for the first of their kind, which may hang.
_FIRST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Time limits, in seconds, and number of retries.

    The wait between attempts doubles from ``first_wait`` to ``longest_wait``. A Retry-After above
    ``longest_wait`` is reduced to it; one below the own wait does not shorten it, because many
    retries in a short time do not help an overloaded server.
    """

    #: For one HTTP request.
    timeout: float = 300.0
    max_retries: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0

    @property
    def total_timeout(self) -> float:
        """Seconds for all attempts of a request, including the waits between them."""
        return 3 * self.timeout + self.longest_wait

    def wait(self, retry: int, requested: float | None) -> float:
        """Return the seconds before a retry (counted from 0), at least those the server requests.

        A random part keeps requests that failed together from being repeated together.
        """
        longest = min(self.first_wait * 2**retry, self.longest_wait)
        own = random.uniform(longest / 2, longest)
        if requested is None:
            return own
        return max(own, min(requested, self.longest_wait) + random.uniform(0, self.first_wait))


class Client:
    """Client of one model, for groups of requests; all coroutines run in one event loop.

    ``on_outcome``: called after every HTTP request, with True for a response and False for an
    overloaded server. ``usage``: usage so far, by benchmark. ``names``: the model names in replies,
    which may differ from the one in the request (a date, an alias).
    """

    def __init__(
        self,
        spec: EndpointSpec,
        key: Secret,
        headers: Mapping[str, Secret],
        *,
        retry_policy: RetryPolicy,
        limiter: RateLimiter,
        on_outcome: Callable[[bool], None],
        price: Price | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        self.names: set[str] = set()
        self._spec = spec
        self._connection = EndpointConnection(spec, key, headers, retry_policy.timeout)
        self._retry_policy = retry_policy
        self._limiter = limiter
        self._price = price or Price(0.0, 0.0)
        self._budget = budget or Budget()
        self._on_outcome = on_outcome
        self._dialect = Dialect()
        self._stop_rule = StopRule()
        self._first: dict[Ask, asyncio.Event] = {}
        self._probing = asyncio.Lock()
        #: Error if echoes cannot be used, "" if they can; None before the probe.
        self._echo_error: str | None = None
        self._tokens_per_character = _TOKENS_PER_CHARACTER

    @property
    def supports_n(self) -> bool:
        """True unless the server has rejected several samples per HTTP request."""
        return self._dialect.supports_n

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def answer(self, group: Sequence[Request]) -> list[Response]:
        """Return one response per request; the requests differ only in ``sample``.

        The response of a request that fails after all retries has ``error``. Raises ModelError
        after many consecutive failures of the same kind, and SpendLimitError if a request might
        exceed the spending limit.
        """
        started = time.perf_counter()
        try:
            responses = await self._answer_after_first(group)
        except RequestFailedError as failed:
            responses = self._failure_responses(group, failed.fault)
        else:
            self._stop_rule.succeeded()
        seconds = (time.perf_counter() - started) / len(group)
        return [
            replace(response, sample=request.sample, arm=request.arm, seconds=seconds)
            for request, response in zip(group, responses, strict=True)
        ]

    def _failure_responses(self, group: Sequence[Request], fault: Fault) -> list[Response]:
        """Return the responses to failed requests: errors, or replies without a text."""
        if fault.finish_reason is not None:
            self._stop_rule.succeeded()
            ended = Response("", text="", finish_reason=fault.finish_reason)
            return [replace(ended, id=request.id) for request in group]
        self.usage[group[0].benchmark].failed += len(group)
        if self._stop_rule.failed(fault):
            raise ModelError(
                f"{self._stop_rule.limit} consecutive requests failed in the same way; the last:"
                f" {fault.message}"
            ) from None
        return [Response(request.id, error=fault.message) for request in group]

    async def _answer_after_first(self, group: Sequence[Request]) -> list[Response]:
        """Send the first request of a kind alone, so that the others use the dialect it learns."""
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

    # --- modes of requests

    async def _texts(self, group: Sequence[Request]) -> list[Response]:
        first = group[0]
        call, data = await self._call(
            first.benchmark, lambda dialect: payloads.generation_call(self._spec, group, dialect)
        )
        completions = payloads.read_completions(self._spec, data, first.decoding.stop)
        completions = completions[: len(group)]
        if "stop" in call.body and any(completion.only_reasoning for completion in completions):
            # The server may have found a stop string inside the reasoning.
            self._omit("stop")
            return await self._texts(group)
        if not data["choices"]:
            completions *= len(group)
        if len(completions) < call.body.get("n", 1):
            # The server accepted the parameter and ignored it.
            self._dialect = replace(self._dialect, supports_n=False)
        tokens = payloads.read_usage(data)
        responses = [
            Response(
                request.id,
                text=completion.text,
                reasoning=completion.reasoning,
                finish_reason=completion.finish_reason,
                prompt_tokens=tokens.prompt,
                completion_tokens=_share(tokens.completion, len(completions), number),
            )
            for number, (request, completion) in enumerate(zip(group, completions, strict=False))
        ]
        for request in group[len(responses) :]:
            responses += await self._texts([request])
        return responses

    async def _letter(self, request: Request) -> Response:
        if not are_letters(request.choices):
            raise RequestFailedError(
                Fault(
                    "no letters",
                    "choices=top_logprobs needs choices that are single letters, and these are"
                    " texts: use choices=echo if the server supports it",
                )
            )
        call, data = await self._call(
            request.benchmark, lambda dialect: payloads.letter_call(self._spec, request, dialect)
        )
        tokens = payloads.read_usage(data)
        if (refusal := payloads.read_refusal(data)) is not None:
            return Response(request.id, text=refusal.text, finish_reason=refusal.finish_reason)
        requested = call.body.get("top_logprobs") or call.body["logprobs"]
        try:
            top = payloads.read_top_tokens(data, requested)
        except ValueError as error:
            raise RequestFailedError(Fault("top_logprobs", f"top_logprobs: {error}")) from None
        if top is None:
            raise RequestFailedError(
                Fault(
                    "no top_logprobs",
                    "the server returns no top_logprobs: remove choices=top_logprobs from the spec"
                    " to generate the letter instead",
                )
            )
        reading = read_letters(request.choices, top)
        if not reading.decided:
            # An unlisted token may be likelier than the listed letters: generate the letter.
            text_request = replace(request, choices=(), decoding=LETTER_DECODING)
            return (await self._texts([text_request]))[0]
        return Response(
            request.id,
            logprobs=reading.logprobs,
            prompt_tokens=tokens.prompt,
            completion_tokens=tokens.completion,
        )

    async def _echo(self, request: Request) -> Response:
        async with self._probing:
            if self._echo_error is None:
                self._echo_error = await self._probe_echo(request.benchmark)
        if self._echo_error:
            raise ModelError(self._echo_error)
        _, data = await self._call(
            request.benchmark, lambda _: payloads.echo_call(self._spec, request)
        )
        try:
            logprobs = tuple(echo.logprob for echo in read_echoes(request, data))
        except ValueError as error:
            raise RequestFailedError(Fault("echo", f"choices=echo: {error}")) from None
        return Response(
            request.id, logprobs=logprobs, prompt_tokens=payloads.read_usage(data).prompt
        )

    async def _probe_echo(self, benchmark: str) -> str:
        """Verify the echoes of the server; return an error message, or "" if usable."""
        call = payloads.echo_call(self._spec, PROBE)
        try:
            _, data = await self._call(benchmark, lambda _: call)
            check_probe(data)
        except RequestFailedError as failed:
            return echo_error(
                failed.fault.message, refused=payloads.refuses_echo(call, failed.fault)
            )
        except ValueError as error:
            return echo_error(f"the server returned {error}")
        return ""

    def _omit(self, name: str) -> None:
        self._dialect = replace(self._dialect, omitted=self._dialect.omitted | {name})

    # --- HTTP requests and retries

    async def _call(
        self, benchmark: str, build: Callable[[Dialect], Call]
    ) -> tuple[Call, dict[str, Any]]:
        """Send the call that ``build`` returns, with retries; return call and reply.

        Raises RequestFailedError with the last fault.
        """
        retry_policy, usage = self._retry_policy, self.usage[benchmark]
        until = time.monotonic() + retry_policy.total_timeout
        retries = 0
        while True:
            dialect = self._dialect
            call = build(dialect)
            call = replace(call, body=dialect.filter_body(call.body))
            expected = self._expected_tokens(call)
            cost = self._price.of(expected.prompt or 0, expected.completion or 0)
            began = time.monotonic()
            await self._budget.admit(cost)
            usage.waited += await self._limiter.admit(_total(expected))
            until += time.monotonic() - began
            usage.requests += 1
            used = TokenUsage(0, 0)
            try:
                data = await self._connection.post(
                    call, min(retry_policy.timeout, until - time.monotonic())
                )
                used = self._used(call, data, expected)
            except RequestFailedError as failed:
                fault = failed.fault
            else:
                self._on_outcome(True)
                usage.add(payloads.read_usage(data))
                if isinstance(name := data.get("model"), str) and name:
                    self.names.add(name)
                return call, data
            finally:
                self._limiter.used(_total(expected), _total(used))
                self._budget.settle(
                    cost, self._price.of(used.prompt or 0, used.completion or 0, used.cached)
                )
            other = adapt_dialect(dialect, call.body, fault)
            if other is not None:
                # Another request may have changed the dialect in the meantime.
                self._dialect = other if self._dialect == dialect else self._dialect
                continue
            if fault.overload:
                self._on_outcome(False)
            wait = retry_policy.wait(retries, fault.retry_after)
            if (
                not fault.retryable
                or payloads.refuses_echo(call, fault)
                or retries == retry_policy.max_retries
                or time.monotonic() + wait >= until
            ):
                raise RequestFailedError(
                    _final_fault(
                        fault, retries + 1, suggest_fix(call.body, fault, self._spec.added)
                    )
                )
            retries += 1
            usage.retries += 1
            await asyncio.sleep(wait)

    def _expected_tokens(self, call: Call) -> TokenUsage:
        """Return the maximum expected usage of a request; 0 if nothing limits tokens or cost."""
        if not (self._limiter.counts_tokens or self._budget.is_limited):
            return TokenUsage(0, 0)
        answer = call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 0
        prompt = _characters(call) * self._tokens_per_character
        return TokenUsage(math.ceil(prompt), answer * call.body.get("n", 1))

    def _used(self, call: Call, data: dict[str, Any], expected: TokenUsage) -> TokenUsage:
        """Return the usage that the server reports, else the expected one."""
        tokens = payloads.read_usage(data)
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


def _share(total: int | None, parts: int, number: int) -> int | None:
    """Return the share of sample ``number`` in a count reported for all samples together."""
    return None if total is None else total // parts + (number < total % parts)


def _final_fault(fault: Fault, attempts: int, advice: str) -> Fault:
    """Return the fault with the number of attempts and the advice in its message."""
    message = fault.message if attempts == 1 else f"{fault.message} (after {attempts} attempts)"
    return replace(fault, message=f"{message}; {advice}" if advice else message)
