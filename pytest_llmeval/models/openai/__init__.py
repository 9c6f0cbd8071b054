"""``openai:NAME[?key=value&…]``: models behind an OpenAI-compatible server.

Keys: ``base_url``; ``api`` (``chat``, the default, or ``completions``); ``choices``, the source of
log-likelihoods of choices: ``top_logprobs`` (letters, from the likeliest next tokens) or ``echo``
(any text, from an echoed prompt). Without it, such protocols generate letters instead. ``key_env``
or ``key_file``: source of the key (by default OPENAI_API_KEY); ``name``: name in test ids and
reports; ``server``: ``vllm`` or ``sglang``, to which neutral values are sent for the parameters that
it would take from the model's files. Further keys (``BODY_KEYS``) are fields of the request body.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.core.usage import Price
from pytest_llmeval.core.usage import Usage
from pytest_llmeval.models.awaited import ResponseBatch
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.base import ResponseStore
from pytest_llmeval.models.openai.background_loop import ConcurrencyWindow
from pytest_llmeval.models.openai.background_loop import Job
from pytest_llmeval.models.openai.background_loop import JobRunner
from pytest_llmeval.models.openai.client import Client
from pytest_llmeval.models.openai.client import RetryPolicy
from pytest_llmeval.models.openai.limits import Budget
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import RateLimiter
from pytest_llmeval.models.openai.limits import SharedState
from pytest_llmeval.models.openai.spec import EndpointSpec
from pytest_llmeval.models.openai.spec import Secret
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.models.openai.spec import read_header_secrets
from pytest_llmeval.models.openai.spec import read_key
from pytest_llmeval.models.openai.spec import refuse_stored_secrets

# Maximum number of requests in flight if the user sets no limit.
_MAX_IN_FLIGHT = 256
# Maximum samples per HTTP request: it takes as long as its slowest sample.
_MAX_SAMPLES = 16


def open_model(
    rest: str,
    *,
    base_url: str | None = None,
    extra_body: Mapping[str, Any] | None = None,
    header: Mapping[str, str] | None = None,
    max_concurrency: int | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    prices: Mapping[str, Price] | None = None,
    max_cost: float | None = None,
    cache: ResponseStore | None = None,
    shared_limits: Path | None = None,
    spend_state: SharedState | None = None,
) -> EndpointModel:
    """Return the model of the spec ``openai:<rest>``; sends nothing and does not import the SDK.

    ``extra_body``: fields that are added to every request. ``header``: header name → environment
    variable with its value. ``max_concurrency``: requests in flight; adjusted to the server if None. ``timeout``: seconds
    for one HTTP request. ``prices``: by spec (``openai:NAME``). ``max_cost``: spending limit in the
    currency of the prices. ``spend_state``: sum of the cost over models and processes.
    ``shared_limits``: a file through which processes share the other limits.

    Raises ConfigError, in one line, for a missing extra, key or price, and for an invalid spec or
    option.
    """
    spec = parse_spec(rest, base_url, extra_body, header)
    for name, value in (
        ("max_concurrency", max_concurrency),
        ("requests_per_minute", requests_per_minute),
        ("tokens_per_minute", tokens_per_minute),
        ("timeout", timeout),
    ):
        if value is not None and not value > 0:
            raise ConfigError(f"openai:{spec.model}: {name} {value:g} is not above 0")
    if max_retries is not None and max_retries < 0:
        raise ConfigError(f"openai:{spec.model}: max_retries {max_retries} is below 0")
    if importlib.util.find_spec("openai") is None:
        raise ConfigError(f"openai:{spec.model}: openai not installed: {install_hint('openai')}")
    price = (prices or {}).get(f"openai:{spec.model}")
    if max_cost is not None and price is None:
        raise ConfigError(
            f"openai:{spec.model}: --llm-max-cost needs its price: pass --llm-prices FILE with a"
            f' table [models."openai:{spec.model}"]'
        )
    retry_policy = RetryPolicy()
    if timeout is not None:
        retry_policy = replace(retry_policy, timeout=timeout)
    if max_retries is not None:
        retry_policy = replace(retry_policy, max_retries=max_retries)
    shared = SharedState(shared_limits)
    key, headers = read_key(spec), read_header_secrets(spec)
    refuse_stored_secrets(spec, (key, *headers.values()))
    return EndpointModel(
        spec,
        key,
        headers,
        retry_policy=retry_policy,
        window=ConcurrencyWindow(
            max_concurrency or _MAX_IN_FLIGHT, fixed=max_concurrency is not None
        ),
        limiter=RateLimiter(requests_per_minute, tokens_per_minute, shared),
        lease=Lease(max_concurrency or _MAX_IN_FLIGHT, shared) if shared.is_file else None,
        price=price,
        budget=Budget(max_cost, spend_state),
        cache=cache,
    )


class EndpointModel(Model):
    """Model behind an endpoint: text, and log-likelihoods of choices if the spec has ``choices``.

    ``price``: price of tokens, None if unknown.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        key: Secret,
        headers: Mapping[str, Secret],
        *,
        retry_policy: RetryPolicy,
        window: ConcurrencyWindow,
        limiter: RateLimiter,
        lease: Lease | None = None,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: ResponseStore | None = None,
    ) -> None:
        self.name = spec.name
        self.request_modes: Mapping[Ask, str] = spec.request_modes
        self.asks: frozenset[Ask] = frozenset(spec.request_modes)
        self.additions: Mapping[str, Any] = spec.added.content
        self.price = price
        self._spec = spec
        self._window = window
        self._cache = cache
        self._client = Client(
            spec,
            key,
            headers,
            retry_policy=retry_policy,
            limiter=limiter,
            on_outcome=self._on_outcome,
            price=price,
            budget=budget,
        )
        self.usage_by_benchmark: Mapping[str, Usage] = self._client.usage
        self._runner = JobRunner(window, lease, self._client.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} openai:{self._spec.model} at {self._spec.base_url}>"

    @property
    def fingerprint(self) -> str:
        """16 hex digits for name, address and request modes.

        Excludes everything that the server reports about itself, which would need a request.
        """
        return self._spec.fingerprint

    @property
    def usage(self) -> Usage:
        """Requests, tokens and cost so far, over all benchmarks."""
        return sum(self.usage_by_benchmark.values(), Usage())

    @property
    def warnings(self) -> Sequence[str]:
        """Problems of the replies as a whole: replies from several models."""
        names = sorted(self._client.names)
        if len(names) < 2:
            return []
        return [
            f"openai:{self._spec.model}: replies came from several models ({', '.join(names)}), and"
            " the scores mix them: fix the server's routing, or use the name of one of them"
        ]

    @property
    def prefetch(self) -> int:
        """Number of pending requests that keeps the endpoint busy: twice those in flight."""
        return 2 * self._window.limit

    def answer(self, requests: Iterable[Request]) -> ResponseBatch:
        """Start the requests at once; yield one response per request as they complete.

        Several calls share the limit of requests in flight, earlier calls first. To keep the
        endpoint busy, call again before all responses of the previous call have been consumed.

        Raises ConfigError for a request that the endpoint does not support, and, while yielding,
        ModelError if the endpoint cannot be used.
        """
        ready: list[Response] = []
        missing: list[Request] = []
        for request in requests:
            self._check(request)
            # Create the entry in this thread: the loop's thread only updates it.
            usage = self._client.usage[request.benchmark]
            cached = self._cache and self._cache.get(self.fingerprint, request)
            if cached:
                usage.from_cache += 1
                ready.append(cached)
            else:
                missing.append(request)
        jobs = [self._job(group) for group in self._groups(missing)]
        return self._runner.submit(jobs, ready)

    def billed_prompts(self, request: Request) -> int:
        """Return the number of times that the prompt is sent: once per choice with choices=echo."""
        return len(request.choices) if request.choices and self._spec.choices == "echo" else 1

    def close(self) -> None:
        """Cancel requests in flight and close all connections."""
        self._runner.close()

    def _check(self, request: Request) -> None:
        spec = self._spec
        for name in ("top_k", "min_p"):
            if name in spec.added.body and getattr(request.decoding, name):
                raise ConfigError(
                    f"openai:{spec.model}: the protocol's decoding has {name}, and so have"
                    " --llm-extra-body or the spec: remove it there"
                )
        if request.chat and spec.api == "completions":
            raise ConfigError(
                f"openai:{spec.model}: api=completions takes plain text, and the protocol is a"
                " chat: use api=chat"
            )
        if request.chat and request.prompt.prefix:
            raise ConfigError(
                f"openai:{spec.model}: the protocol begins the answer ({request.prompt.prefix!r}),"
                " which a chat endpoint cannot be relied on to continue"
            )

    def _groups(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Yield requests that one HTTP request may answer: samples of one item."""
        for _, equal in groupby(requests, key=lambda request: replace(request, sample=0)):
            samples = list(equal)
            first = samples[0]
            several = first.ask == "text" and first.decoding.temperature > 0
            size = _MAX_SAMPLES if several and self._client.supports_n else 1
            for start in range(0, len(samples), size):
                yield samples[start : start + size]

    def _job(self, group: Sequence[Request]) -> Job:
        async def job() -> Sequence[Response]:
            responses = await self._client.answer(group)
            if self._cache is not None:
                # Before the responses are consumed: a killed process keeps what has been paid for.
                pairs = zip(group, responses, strict=True)
                self._cache.put(
                    self.fingerprint, [pair for pair in pairs if _is_cacheable(pair[1])]
                )
            return responses

        return job

    def _on_outcome(self, answered: bool) -> None:
        now = time.monotonic()
        if answered:
            self._window.succeeded(now, full=self._runner.is_full)
        else:
            self._window.rejected(now)


def _is_cacheable(response: Response) -> bool:
    """Return True for a response to keep: no error, no refusal, and not empty.

    An empty text counts as an answer if the model ended it after generating tokens.
    """
    if response.error is not None or response.finish_reason in (FILTERED, REFUSED):
        return False
    ended = response.finish_reason == "stop" and bool(response.completion_tokens)
    return bool(response.text or response.logprobs) or ended
