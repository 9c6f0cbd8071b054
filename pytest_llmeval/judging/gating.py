"""A run against a thresholds file: what a session and ``llmeval gate`` do alike."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from pytest_llmeval.catalog import NAMES
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import Comparisons
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import nothing_decided
from pytest_llmeval.runs.debiased import DEBIASED
from pytest_llmeval.runs.hybrids import first_outcomes
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.scorers import SCORERS


def check_thresholds(thresholds: Thresholds, collected: Mapping[str, CollectedBenchmark]) -> None:
    """Raise ConfigError for the first name in the file that cannot be right."""
    check_names(thresholds, NAMES, collected, known_scorers={*SCORERS, *DEBIASED})


def verdicts_on(
    measurements: Sequence[Measurement],
    thresholds: Thresholds,
    file: str,
    collected: Iterable[str],
    comparisons: Comparisons | None,
    *,
    allow_undecided: bool,
) -> list[Verdict]:
    """Verdicts on every gate of the file; one more where none of them was decided (rule 2).

    ``file``: its name; ``collected`` and ``comparisons`` as in ``judge``.
    """
    results = [one.result for one in measurements]
    models = list(dict.fromkeys(result.model for result in results))
    outcomes = first_outcomes(measurements)
    verdicts = judge(thresholds, results, models, collected, comparisons, outcomes)
    nothing = nothing_decided(verdicts, file)
    return verdicts if nothing is None or allow_undecided else [*verdicts, nothing]
