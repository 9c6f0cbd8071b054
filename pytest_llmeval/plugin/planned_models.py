"""Properties of a run's models that are known before their weights are loaded, and notes on its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.order_tests import order_test_notes
from pytest_llmeval.models import Model
from pytest_llmeval.models import load_model


@dataclass
class PlannedModels:
    """Properties of all models of a plan; empty for the model of a fixture."""

    #: Protocol variant that the model supports, by index of model and planned result.
    variants: dict[tuple[int, int], ProtocolVariant] = field(default_factory=dict)
    #: Spec of a model → its name in reports.
    names: dict[str, str] = field(default_factory=dict)
    #: Spec of a model → its request modes for choices and text.
    request_modes: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Spec of a model → what is added to its requests (``Model.additions``), if there is anything.
    additions: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Spec of a model → the date in its chat template, if there is one.
    template_dates: dict[str, str] = field(default_factory=dict)
    #: True if a model takes requests of several chunks at a time.
    prefetches: bool = False
    #: True if a model can run as replicas; unknown for the model of a fixture.
    replicable: bool = False


def check_models(plan: Plan, settings: Settings) -> PlannedModels:
    """Open every model of a plan; raise ConfigError if one does not support a planned protocol."""
    models = PlannedModels(replicable=plan.own_model)
    variants = [variant for result in plan.results for variant in result.variants]
    if settings.system is not None and not any(variant.protocol["chat"] for variant in variants):
        raise ConfigError(
            "--llm-system: no protocol of this run is a chat: add --llm-protocol +chat"
        )
    for index, spec in enumerate(() if plan.own_model else settings.models):
        model = load_model(spec, **settings.endpoint)
        models.names[spec] = model.name
        models.request_modes[spec] = dict(model.request_modes.items())
        if model.additions:
            models.additions[spec] = dict(model.additions)
        if model.template_date:
            models.template_dates[spec] = model.template_date
        models.prefetches |= model.prefetch > 0
        models.replicable |= model.replicable
        _check_orders(plan, spec, model)
        names: dict[tuple[str, str], str] = {}
        for number, result in enumerate(plan.results):
            if result.responses_of is not None:
                continue
            planned = result.variants[0].name
            supported = (variant for variant in result.variants if variant.ask in model.asks)
            variant = next(supported, None)
            if variant is None:
                raise ConfigError(
                    f"--llm-model {spec} cannot generate text, which protocol"
                    f" {planned!r} of {result.benchmark} needs: choose another protocol"
                )
            models.variants[index, number] = variant
            other = names.setdefault((result.benchmark, variant.scorer), planned)
            if other != planned:
                raise ConfigError(
                    f"--llm-model {spec} supports only text, so protocols {other!r} and"
                    f" {planned!r} would both give the result"
                    f" ({result.benchmark}, {variant.scorer}): run one of them"
                )
    return models


def _check_orders(plan: Plan, spec: str, model: Model) -> None:
    """Raise ConfigError for order tests of a model without log-likelihoods of whole texts."""
    mode = model.request_modes.get("choices", "")
    if not any(result.contamination for result in plan.results):
        return
    if "choices" not in model.asks or mode.endswith("top_logprobs"):
        hint = ": add choices=echo to its spec" if spec.startswith("openai:") else ""
        raise ConfigError(
            f"--llm-contamination needs the log-likelihoods of whole texts, which --llm-model {spec}"
            f" does not return{hint}"
        )


def plan_notes(plan: Plan, settings: Settings) -> Iterator[str]:
    """Yield notes on a plan: warnings about data, identical samples, options without effect."""
    yield from dict.fromkeys(warning for result in plan.results for warning in result.warnings)
    greedy = {
        f"protocol {variant.name!r} of {result.benchmark} is greedy (temperature 0): its samples"
        " differ only if the model is not deterministic"
        for result in plan.results
        for variant in result.variants
        if variant.samples > 1 and variant.protocol["decoding"]["temperature"] == 0
    }
    yield from sorted(greedy)
    plain = {
        f"--llm-system: no effect on protocol {variant.name!r} of {result.benchmark}, which is not a chat"
        for result in plan.results
        for variant in result.variants
        if settings.system is not None and not variant.protocol["chat"]
    }
    yield from sorted(plain)
    added = {"extra_body": "--llm-extra-body", "header": "--llm-header"}
    for name, option in added.items():
        if name in settings.endpoint and not any(m.startswith("openai:") for m in settings.models):
            yield f"{option}: no effect, because no model of this run is an endpoint"
    if settings.debias and not any(result.debias for result in plan.results):
        yield "--llm-debias: no effect, because no benchmark of this run compares letters"
    yield from order_test_notes(plan)
    if settings.permutations and not any(result.arms for result in plan.results):
        yield "--llm-permutations: no effect, because no benchmark of this run has options"
