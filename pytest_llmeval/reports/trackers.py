"""A stored run in MLflow or Weights & Biases, each an extra.

Where it is written to is what the libraries read from the environment: ``MLFLOW_TRACKING_URI``,
``WANDB_MODE``, ``WANDB_PROJECT``, ``WANDB_DIR``.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.reports.export import COLUMNS
from pytest_llmeval.reports.export import rows
from pytest_llmeval.reports.flat_metrics import flat_metrics
from pytest_llmeval.reports.flat_metrics import flat_parameters
from pytest_llmeval.reports.flat_metrics import flat_tags
from pytest_llmeval.reports.flat_metrics import tracker_key
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.run import Run

_METRICS = 1_000  # of one batch of MLflow
_PARAMETERS = 100
_TEXT = 500  # characters of a parameter, MLflow's limit is 6,000
_FILES = ("run.json", "metrics.json", "gates.json", "comparison.json", "report.html")


def log_to_mlflow(run: Run, judged: JudgedRun) -> str:
    """Log one run of MLflow, and return where. Raises ConfigError for what MLflow refuses."""
    import mlflow

    try:
        with mlflow.start_run(run_name=judged.path.name) as active:
            for metrics in _batches(flat_metrics(judged), _METRICS):
                mlflow.log_metrics(metrics)
            for parameters in _batches(flat_parameters(judged), _PARAMETERS):
                mlflow.log_params({name: text[:_TEXT] for name, text in parameters.items()})
            mlflow.set_tags(flat_tags(judged))
            for file in _files(judged.path):
                mlflow.log_artifact(str(file), "llmeval")
            return f"run {active.info.run_id} of {mlflow.get_tracking_uri()}"
    except mlflow.exceptions.MlflowException as error:
        raise ConfigError(f"MLflow: {' '.join(str(error).split())}") from None


def log_to_wandb(run: Run, judged: JudgedRun) -> str:
    """Log one run of Weights & Biases, and return where. Raises ConfigError if it cannot be."""
    import wandb

    try:
        tracked = wandb.init(
            name=judged.path.name,
            job_type="evaluation",
            config={**flat_parameters(judged), **flat_tags(judged)},
        )
        tracked.summary.update(flat_metrics(judged))
        names = [column.name for column in COLUMNS]
        # Mixed: an answer may be a text in one row and missing in another.
        table = wandb.Table(columns=names, allow_mixed_types=True)
        for row in rows(run):
            table.add_data(*(row[name] for name in names))
        tracked.log({"answers": table})
        artifact = wandb.Artifact(tracker_key(f"llmeval-{judged.path.name}"), type="evaluation")
        for file in _files(judged.path):
            artifact.add_file(str(file))
        tracked.log_artifact(artifact)
        folder = Path(tracked.dir).parent
        tracked.finish()
    except wandb.errors.Error as error:
        raise ConfigError(f"Weights & Biases: {' '.join(str(error).split())}") from None
    return f"run {tracked.id}, {folder}"


TRACKERS = {"mlflow": log_to_mlflow, "wandb": log_to_wandb}
"""Format of ``llmeval export`` → the function that logs a run; the extra has the same name."""


def _batches(values: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    entries = iter(values.items())
    while batch := dict(islice(entries, size)):
        yield batch


def _files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in _FILES if (folder / name).is_file())
