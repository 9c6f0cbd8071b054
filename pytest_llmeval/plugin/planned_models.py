"""Properties of a run's models that are known before their weights are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.settings import Settings
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
    variants = [variant for result in plan.results for variant in result.ways]
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
        names: dict[tuple[str, str], str] = {}
        for number, result in enumerate(plan.results):
            if result.responses_of is not None:
                continue
            planned = result.ways[0].name
            supported = (variant for variant in result.ways if variant.ask in model.asks)
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
