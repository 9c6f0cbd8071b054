"""Models of this process that run as replicas, which share one connection to the cluster."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Hashable
from typing import TYPE_CHECKING
from typing import Any

from pytest_llmeval.core.settings import ReplicaSettings

if TYPE_CHECKING:
    from pytest_llmeval.models.ray.cluster import Cluster
    from pytest_llmeval.models.ray.pool import ReplicatedModel


class ReplicaPools:
    """Replicated models by spec, or by the factory of a fixture. Only one has replicas at a time."""

    def __init__(self, settings: ReplicaSettings | None) -> None:
        """Connect to nothing yet."""
        self._settings = settings
        self._cluster: Cluster | None = None
        self._models: dict[Hashable, ReplicatedModel] = {}

    def get(self, key: Hashable, source: str | Callable[[], object]) -> ReplicatedModel:
        """Return the model of a source, whose replicas are started by the first call for its key.

        Replicas of other models are ended if they have nothing to do, which frees their GPUs.
        Raises ConfigError, in one line.
        """
        # They load event loops and thread pools, which no other session needs.
        from pytest_llmeval.models.ray.pool import ReplicatedModel

        assert self._settings is not None
        if key not in self._models:
            for other in self._models.values():
                other.release()
            self._models[key] = ReplicatedModel(source, self.cluster, self._settings)
        return self._models[key]

    @property
    def cluster(self) -> Cluster:
        """The cluster of the settings, to which the first use connects."""
        from pytest_llmeval.models.ray.cluster import Cluster  # see above

        assert self._settings is not None
        if self._cluster is None:
            self._cluster = Cluster(self._settings.address)
        return self._cluster

    @property
    def activity(self) -> str:
        """State of the replicas of the model that started last; empty without any."""
        models = list(self._models.values())
        return models[-1].activity if models else ""

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return, by spec or name, where a model runs."""
        return {
            key if isinstance(key, str) else model.name: model.description()
            for key, model in self._models.items()
        }

    def close(self) -> None:
        """End all replicas, and a local cluster."""
        for model in self._models.values():
            model.close()
        if self._cluster is not None:
            self._cluster.close()
