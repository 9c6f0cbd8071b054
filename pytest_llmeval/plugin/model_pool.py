"""The models of this process: loaded once, within the limits that all processes share."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from dataclasses import asdict

import pytest

from pytest_llmeval.core.settings import Settings
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.models import load_model
from pytest_llmeval.plugin.worker_channel import Exchange
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.storage.folder import RunFolder


class LoadedModels:
    """What the `model` fixture gave, as models. Nothing is loaded before it is asked for."""

    def __init__(
        self, config: pytest.Config, settings: Settings, folder: Callable[[], RunFolder]
    ) -> None:
        """``folder``: that of the run, which there is once a model is loaded."""
        self._settings = settings
        self._folder = folder
        self._exchange = Exchange.here(config)
        #: By identity: a user's fixture may give anything.
        self._models: dict[int, Model] = {}
        self._specs: dict[int, str] = {}
        self._money: object = None

    def load(self, spec: str) -> Model:
        """The model that answers in this process, sharing limits and cache with the others."""
        options = dict(self._settings.endpoint)
        if self._settings.cache is not None:
            from pytest_llmeval.storage.response_cache import ResponseCache

            options["cache"] = ResponseCache(self._settings.cache)
        if self._exchange is not None:
            options["shared_limits"] = self._exchange.limits(spec)
        if "max_cost" in options:
            options["spend_state"] = self._spent()
        model = load_model(spec, **options)
        self._specs[id(model)] = spec
        return model

    def _spent(self) -> object:
        """Where all models of all processes add up what the run has cost, earlier sessions too."""
        from pytest_llmeval.models.openai.limits import SharedState

        if self._money is None:
            shared = SharedState(self._exchange.spent if self._exchange is not None else None)
            earlier = total_cost(self._folder().read("run.json"), self._settings.prices) or 0.0
            # By the first process; the sums of run.json are those of earlier sessions until the end.
            shared.update(lambda state: state.setdefault("spent", earlier))
            self._money = shared
        return self._money

    def model(self, value: object) -> Model:
        """A fixture's value as a model, the same one every time."""
        if id(value) not in self._models:
            self._models[id(value)] = as_model(value)
        return self._models[id(value)]

    def name_of(self, value: object) -> str | None:
        """What a model that has been asked is called; None for anything else."""
        known = self._models.get(id(value))
        return None if known is None else known.name

    def usage(self) -> list[tuple[str, str, dict[str, float]]]:
        """What this process has used of endpoints: model, benchmark, and counts by name.

        In any thread, while another loads a model.
        """
        return [
            (self._specs.get(id(model), model.name), benchmark, asdict(usage))
            for model in list(self._models.values())
            for benchmark, usage in list(model.usage_by_benchmark.items())
        ]

    def warnings(self, item_ids: Callable[[], Collection[str]]) -> list[str]:
        """Problems of the models of this process, and of what they have recorded.

        ``item_ids``: those of all benchmarks of the session.
        """
        lines = [line for model in self._models.values() for line in model.warnings]
        recorded = [model for model in self._models.values() if model.recorded_items]
        known = item_ids() if recorded else ()
        for model in recorded:
            unknown = [item for item in model.recorded_items if item not in known]
            if unknown:
                lines.append(
                    f"{model.name}: {len(unknown):,} answers are recorded for items that no benchmark"
                    f" of the run has: {abbreviate(unknown, 3)}"
                )
        return lines

    def close(self) -> None:
        """Close the models."""
        for model in self._models.values():
            model.close()
