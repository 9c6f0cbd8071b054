"""``openai:NAME[?key=value&…]``: models behind an OpenAI-compatible server.

Keys: ``base_url``; ``api`` (``chat``, the default, or ``completions``); ``choices``, how
log-likelihoods of choices are read: ``top_logprobs`` (letters, from the likeliest next tokens) or
``echo`` (any text, from an echoed prompt); without it such protocols are put as generated letters.
``key_env`` or ``key_file`` say where the key is (by default OPENAI_API_KEY); ``name`` is for ids
and reports.
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

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.core.usage import Price
from pytest_llmeval.core.usage import Usage
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.base import ResponseStore
from pytest_llmeval.models.openai.background_loop import Batch
from pytest_llmeval.models.openai.background_loop import Flow
from pytest_llmeval.models.openai.background_loop import Job
from pytest_llmeval.models.openai.background_loop import Window
from pytest_llmeval.models.openai.client import Client
from pytest_llmeval.models.openai.client import Patience
from pytest_llmeval.models.openai.limits import Budget
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import Limiter
from pytest_llmeval.models.openai.limits import Shared
from pytest_llmeval.models.openai.spec import Secret
from pytest_llmeval.models.openai.spec import Spec
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.models.openai.spec import read_key

# The most that is tried where the user sets no limit.
_MOST_IN_FLIGHT = 256
# Samples asked for at once: more would wait for the slowest of them.
_MOST_AT_ONCE = 16


def open_model(
    rest: str,
    *,
    base_url: str | None = None,
    max_concurrency: int | None = None,
    requests_per_minute: float | None = None,
    tokens_per_minute: float | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    prices: Mapping[str, Price] | None = None,
    max_cost: float | None = None,
    cache: ResponseStore | None = None,
    shared_limits: Path | None = None,
    spent: Shared | None = None,
) -> EndpointModel:
    """The model of the spec ``openai:<rest>``. Nothing is sent, the SDK is not imported.

    ``max_concurrency``: requests in flight; found out where None. ``timeout``: seconds for one
    request. ``prices``: by spec (``openai:NAME``). ``max_cost``: the most that may be spent, in
    their money; ``spent`` is where models and processes add it up. ``shared_limits``: a file
    through which processes share the other limits.

    Raises ConfigError, in one line, for a missing extra, a missing key, a missing price, and
    whatever is wrong with the spec or an option.
    """
    spec = parse_spec(rest, base_url)
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
            f"openai:{spec.model}: --llm-max-cost needs its price: --llm-prices names a file with"
            f' [models."openai:{spec.model}"]'
        )
    patience = Patience()
    if timeout is not None:
        patience = replace(patience, timeout=timeout)
    if max_retries is not None:
        patience = replace(patience, max_retries=max_retries)
    shared = Shared(shared_limits)
    return EndpointModel(
        spec,
        read_key(spec),
        patience=patience,
        window=Window(max_concurrency or _MOST_IN_FLIGHT, fixed=max_concurrency is not None),
        limiter=Limiter(requests_per_minute, tokens_per_minute, shared),
        lease=Lease(max_concurrency or _MOST_IN_FLIGHT, shared) if shared.is_file else None,
        price=price,
        budget=Budget(max_cost, spent),
        cache=cache,
    )


class EndpointModel(Model):
    """Text, and where the spec says so log-likelihoods of choices, from a server.

    ``usage`` grows as it answers; ``price`` is what it costs, where that is known.
    """

    def __init__(
        self,
        spec: Spec,
        key: Secret,
        *,
        patience: Patience,
        window: Window,
        limiter: Limiter,
        lease: Lease | None = None,
        price: Price | None = None,
        budget: Budget | None = None,
        cache: ResponseStore | None = None,
    ) -> None:
        self.name = spec.name
        self.request_modes: Mapping[Ask, str] = spec.request_modes
        self.asks: frozenset[Ask] = frozenset(spec.request_modes)
        self.price = price
        self._spec = spec
        self._window = window
        self._cache = cache
        self._client = Client(
            spec,
            key,
            patience=patience,
            limiter=limiter,
            told=self._heard,
            price=price,
            budget=budget,
        )
        self.usage_by_benchmark: Mapping[str, Usage] = self._client.usage
        self._flow = Flow(window, lease, self._client.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} openai:{self._spec.model} at {self._spec.base_url}>"

    @property
    def fingerprint(self) -> str:
        """16 hex digits for name, address and request modes.

        Nothing that the server reports about itself is in it: that would take a request.
        """
        return self._spec.fingerprint

    @property
    def usage(self) -> Usage:
        """Requests, tokens and cost so far, over all benchmarks."""
        return sum(self.usage_by_benchmark.values(), Usage())

    @property
    def warnings(self) -> Sequence[str]:
        """Problems of the replies as a whole: several models that answered."""
        names = sorted(self._client.names)
        if len(names) < 2:
            return []
        return [
            f"openai:{self._spec.model}: replies came from several models ({', '.join(names)}): fix"
            " the server's routing, or name one of them; their mean describes none"
        ]

    @property
    def prefetch(self) -> int:
        """The number of requests that keep the endpoint busy: twice those in flight."""
        return 2 * self._window.limit

    def answer(self, requests: Iterable[Request]) -> Batch:
        """Begin with the requests at once; yield a response for each, as they complete.

        Requests of several calls share what is in flight, the earlier call's first: to keep the
        endpoint busy, call again before the responses of the last call have all been taken.

        Raises ConfigError for a request that cannot be put to this endpoint, and, while
        yielding, ModelError when the endpoint cannot be used.
        """
        ready: list[Response] = []
        missing: list[Request] = []
        for request in requests:
            self._check(request)
            # Here, so that the other thread finds it: both add to it.
            usage = self._client.usage[request.benchmark]
            found = self._cache and self._cache.get(self.fingerprint, request)
            if found:
                usage.from_cache += 1
                ready.append(found)
            else:
                missing.append(request)
        jobs = [self._job(group) for group in self._groups(missing)]
        return self._flow.submit(jobs, ready)

    def billed_prompts(self, request: Request) -> int:
        """Return how many times the prompt is sent and billed: an echo has all of its text."""
        return len(request.choices) if request.choices and self._spec.choices == "echo" else 1

    def close(self) -> None:
        """Give up what is still in flight, and close all connections."""
        self._flow.close()

    def _check(self, request: Request) -> None:
        spec = self._spec
        if request.chat and spec.api == "completions":
            raise ConfigError(
                f"openai:{spec.model}: a chat protocol cannot be put to api=completions, which"
                " takes plain text"
            )
        if request.chat and request.prompt.prefix:
            raise ConfigError(
                f"openai:{spec.model}: the protocol begins the answer ({request.prompt.prefix!r}),"
                " which a chat endpoint cannot be relied on to continue"
            )

    def _groups(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """Requests that one HTTP request may answer: samples of one item that are drawn."""
        for _, equal in groupby(requests, key=lambda request: replace(request, sample=0)):
            samples = list(equal)
            first = samples[0]
            several = first.ask == "text" and first.decoding.temperature > 0
            size = _MOST_AT_ONCE if several and self._client.takes_several else 1
            for start in range(0, len(samples), size):
                yield samples[start : start + size]

    def _job(self, group: Sequence[Request]) -> Job:
        async def job() -> Sequence[Response]:
            responses = await self._client.answer(group)
            if self._cache is not None:
                # At once, not when somebody takes them: a killed process keeps what it paid for.
                pairs = zip(group, responses, strict=True)
                self._cache.put(self.fingerprint, [pair for pair in pairs if _lasting(pair[1])])
            return responses

        return job

    def _heard(self, answered: bool) -> None:
        now = time.monotonic()
        if answered:
            self._window.succeeded(now, full=self._flow.is_full)
        else:
            self._window.pushed_back(now)


def _lasting(response: Response) -> bool:
    """Whether asking again would give the same: not for errors, refusals, or nothing at all.

    An empty text is an answer where the model ended it and it took tokens.
    """
    if response.error is not None or response.finish_reason in (FILTERED, REFUSED):
        return False
    ended = response.finish_reason == "stop" and bool(response.completion_tokens)
    return bool(response.text or response.logprobs) or ended
