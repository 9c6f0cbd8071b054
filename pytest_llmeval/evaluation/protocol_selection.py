"""Which protocol a marked test runs under, and what the command line changes in it."""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Protocol
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.settings import Settings


def choose_protocol(benchmark: Benchmark, marked: str | None, settings: Settings) -> Protocol:
    """The protocol a marked test runs under.

    A protocol named in the marker stays; the command line chooses for tests that leave it
    open. ``+chat``, ``+chat-text``, ``+generate`` and ``+embed:MODEL`` after the name (or alone,
    for the default protocol) modify it. ``--llm-shots``, ``--llm-samples``, ``--llm-temperature``
    and ``--llm-max-tokens`` override its numbers of either.

    Raises ConfigError for an unknown name, offering the nearest.
    """
    if marked is not None and not isinstance(marked, str):
        raise ConfigError(
            f"benchmark {benchmark.name!r}: protocol= of the marker is of type"
            f" {type(marked).__name__}, not the name of a protocol"
        )
    asked = marked or settings.protocol or ""
    name, *modifiers = asked.split("+")
    by_name = {protocol.name: protocol for protocol in benchmark.protocols}
    if name and name not in by_name:
        raise ConfigError(
            f"benchmark {benchmark.name!r} has no protocol {name!r}{suggestion(name, by_name)}"
        )
    protocol = by_name[name] if name else benchmark.protocols[0]
    for modifier in modifiers:
        if modifier in ("chat", "chat-text"):
            protocol = protocol.with_chat(shots_as_text=modifier == "chat-text")
        elif modifier == "generate":
            protocol = protocol.with_generation()
        elif modifier.startswith("embed:"):
            protocol = _with_embedding(protocol, modifier.removeprefix("embed:"))
        else:
            raise ConfigError(
                f"protocol {asked!r}: unknown modifier '+{modifier}'"
                f"{suggestion(modifier, ('chat', 'chat-text', 'generate', 'embed:MODEL'))}"
            )
    if settings.shots is not None and settings.shots != protocol.shots:
        protocol = replace(protocol, shots=settings.shots)
    if settings.decoding:
        protocol = replace(protocol, decoding=replace(protocol.decoding, **settings.decoding))
    if settings.samples > 1:
        protocol = replace(protocol, samples=settings.samples)
    return protocol


def _with_embedding(protocol: Protocol, model: str) -> Protocol:
    """The protocol with another embedding model to match answers by."""
    if protocol.scorer.partition("+")[0] != "matched":
        raise ConfigError(
            f"protocol {protocol.name!r} matches no answers by their meaning, so it takes no"
            f" '+embed:{model}'"
        )
    return replace(protocol, name=f"{protocol.name}+embed:{model}", scorer=f"matched+{model}")
