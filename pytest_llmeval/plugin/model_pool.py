"""Models of this process: each is loaded once, within the limits that all processes share."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_llmeval.core.settings import Settings
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.models import load_model
from pytest_llmeval.models.ray.factory import ModelFactory
from pytest_llmeval.plugin.replica_pools import ReplicaPools
from pytest_llmeval.plugin.worker_channel import WorkerChannel
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.storage.folder import RunFolder

if TYPE_CHECKING:
    from pytest_llmeval.models.ray.cluster import Cluster


class ModelPool:
    """Values of the `model` fixture as models, which are loaded on first use."""

    def __init__(
        self, config: pytest.Config, settings: Settings, folder: Callable[[], RunFolder]
    ) -> None:
        """Create an empty pool; ``folder`` returns the run folder and is called once a model is loaded."""
        self._settings = settings
        self._folder = folder
        self._channel = WorkerChannel.current(config)
        #: By ``id()``: the value of a project's fixture need not be hashable.
        self._models: dict[int, Model] = {}
        self._specs: dict[int, str] = {}
        self._replicas = ReplicaPools(settings.replicas)
        #: Values of fixtures that were replaced, kept so that no other object gets their ``id()``.
        self._factories: list[ModelFactory] = []
        #: Names of custom models that run in this process only.
        self._unpooled: list[str] = []
        self._shared_spending: object = None

    def load(self, spec: str) -> Model:
        """Open the model of a spec; it shares limits and cache with those of other processes."""
        options = dict(self._settings.endpoint)
        if self._settings.cache is not None:
            from pytest_llmeval.storage.response_cache import ResponseCache

            options["cache"] = ResponseCache(self._settings.cache)
        if self._channel is not None:
            options["shared_limits"] = self._channel.limits_file(spec)
        if "max_cost" in options:
            options["spend_state"] = self._spending()
        model = load_model(spec, **options)
        if model.replicable and self._settings.replicas is not None:
            model = self._replicas.get(spec, spec)
        self._specs[id(model)] = spec
        return model

    def _spending(self) -> object:
        """Return the total cost of the run so far, shared by all processes and earlier sessions."""
        from pytest_llmeval.models.openai.limits import SharedState

        if self._shared_spending is None:
            shared = SharedState(self._channel.spending_file if self._channel is not None else None)
            earlier = total_cost(self._folder().read("run.json"), self._settings.prices) or 0.0
            # Set by the first process: until the end, run.json has the totals of earlier sessions.
            shared.update(lambda state: state.setdefault("spent", earlier))
            self._shared_spending = shared
        return self._shared_spending

    def model(self, value: object) -> Model:
        """Return the fixture's value as a model, always the same object for the same value."""
        if id(value) not in self._models:
            if isinstance(value, ModelFactory):
                self._factories.append(value)
                self._models[id(value)] = self._made(value)
            else:
                self._models[id(value)] = model = as_model(value)
                if id(value) not in self._specs:
                    self._unpooled.append(model.name)
        return self._models[id(value)]

    def _made(self, factory: ModelFactory) -> Model:
        if self._settings.replicas is None:
            return as_model(factory.make())
        return self._replicas.get(factory, factory.make)

    def start_replicas(self) -> None:
        """Start the replicas of the first model that can have some; raise ConfigError in one line."""
        if self._settings.replicas is None:
            return
        for spec in self._settings.models:
            if load_model(spec, **self._settings.endpoint).replicable:
                self._replicas.get(spec, spec)
                return

    @property
    def cluster(self) -> Cluster | None:
        """The cluster of other machines in ``--llm-ray``; None if there is none."""
        settings = self._settings.replicas
        return None if settings is None or settings.address == "local" else self._replicas.cluster

    @property
    def activity(self) -> str:
        """State of the replicas, for the progress; empty without replicas."""
        return self._replicas.activity

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return, by spec or name of a model with replicas, where it runs."""
        return self._replicas.descriptions()

    def used_model_name(self, value: object) -> str | None:
        """Return the name of a model that was used; None for any other value."""
        model = self._models.get(id(value))
        return None if model is None else model.name

    def usage(self) -> list[tuple[str, str, dict[str, float]]]:
        """Return the endpoint usage of this process: model, benchmark, and counts by name.

        Can be called from any thread, also while another thread loads a model.
        """
        return [
            (self._specs.get(id(model), model.name), benchmark, asdict(usage))
            for model in list(self._models.values())
            for benchmark, usage in list(model.usage_by_benchmark.items())
        ]

    def warnings(self, item_ids: Callable[[], Collection[str]]) -> list[str]:
        """Return the warnings of the models of this process, and about their recorded answers.

        ``item_ids``: those of all benchmarks of the session.
        """
        lines = [line for model in self._models.values() for line in model.warnings]
        if self._settings.replicas is not None and self._unpooled:
            lines.append(
                f"--llm-ray: no effect on {', '.join(self._unpooled)}: to have replicas, a `model`"
                " fixture returns pytest_llmeval.models.ray.pooled(make)"
            )
        recorded = [model for model in self._models.values() if model.recorded_items]
        planned_ids = item_ids() if recorded else ()
        for model in recorded:
            unknown = [item for item in model.recorded_items if item not in planned_ids]
            if unknown:
                lines.append(
                    f"{model.name}: {len(unknown):,} answers are recorded for items that no benchmark"
                    f" of the run has: {abbreviate(unknown, 3)}"
                )
        return lines

    def close(self) -> None:
        """Close all models."""
        for model in self._models.values():
            model.close()
        self._replicas.close()
