"""The measurement of one model, benchmark and scorer, and summaries of several measurements."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.matched_detail import MatchedReading
from pytest_llmeval.core.matched_detail import summarise
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import accuracy
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_or_reason
from pytest_llmeval.metrics import summarize
from pytest_llmeval.scorers import counts_all_items


def first_outcomes(measurements: Iterable[Measurement]) -> FirstOutcomes:
    """Return the outcomes of hybrid scores: an item's first sample, or an error if any sample is one."""
    return {
        measurement.result.key: {
            name: Outcome.ERROR if Outcome.ERROR in item.outcomes else item.outcomes[0]
            for name, item in measurement.items.items()
        }
        for measurement in measurements
    }


def hybrid_scores(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield the hybrid score of every model and benchmark that has all scorers, as JSON values.

    Without a score, ``value`` is None and ``reason`` explains it. Yields nothing without ``weights``.
    """
    if not weights:
        return
    unmeasured = {
        measurement.result.key: f"{measurement.result.scorer} is {reason}"
        for measurement in measurements
        if (reason := measurement_problem(measurement.result.counts))
    }
    by_benchmark: dict[tuple[str, str], dict[str, Mapping[str, Outcome]]] = {}
    for (model, benchmark, scorer), outcomes in first_outcomes(measurements).items():
        by_benchmark.setdefault((model, benchmark), {})[scorer] = outcomes
    for (model, benchmark), own in by_benchmark.items():
        if weights.keys() <= own.keys():
            entry = {"model": model, "benchmark": benchmark, "name": hybrid_name(weights)}
            reasons = [unmeasured.get((model, benchmark, scorer)) for scorer in weights]
            hybrid = next(filter(None, reasons), None) or hybrid_or_reason(weights, own)
            if isinstance(hybrid, str):
                yield {**entry, "value": None, "interval": None, "items": 0, "reason": hybrid}
            else:
                yield {**entry, **asdict(hybrid), "interval": list(hybrid.interval)}


def hybrid_lines(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[str]:
    """Describe the hybrid scores, one line each."""
    return map(hybrid_line, hybrid_scores(measurements, weights))


def hybrid_line(hybrid: Mapping[str, Any]) -> str:
    """Describe a hybrid score on one line."""
    name = f"{hybrid['benchmark']}: {hybrid['name']}"
    if hybrid["value"] is None:
        return f"{name} is not computed: {hybrid['reason']}"
    low, high = hybrid["interval"]
    return f"{name} = {hybrid['value']:.4f}, between {low:.4f} and {high:.4f} (95 %)"


@dataclass(frozen=True)
class Measurement:
    """The result of one model on one benchmark under one scorer, item by item.

    Measurements are comparable if ``fingerprint`` and ``data_hash`` are equal.
    """

    result: Result
    #: Item id → outcomes of its samples.
    items: Mapping[str, ItemOutcomes]
    #: Full content of the protocol.
    protocol: Mapping[str, Any]
    fingerprint: str
    #: Fingerprints of its records; an item that was lost before the model's variant was known has
    #: that of the first variant.
    protocols: frozenset[str]
    data_hash: str
    model_fingerprint: str | None
    #: True if another scorer scored the responses of another result.
    shares_responses: bool = False
    #: Request mode of an endpoint that has several (``top_logprobs``).
    request_mode: str = ""
    #: Description of the items of the data that the benchmark excludes.
    excluded: str = ""
    #: Date that the model's chat template writes; empty if it writes none or it is unknown.
    template_date: str = ""

    @property
    def name(self) -> str:
        """Name of the result, such as ``mmlu[letter]``."""
        return self.result.name

    def reading(self) -> dict[str, Any]:
        """Return how answers were extracted, by level and confidence; empty if the scorer has no details."""
        if counts_all_items(self.result.scorer):
            return {}  # The details of patches are doubts.
        if not any(item.details for item in self.items.values()):
            return {}
        details = [
            (detail, outcome is Outcome.CORRECT)
            for item in self.items.values()
            # An item whose answers are all unparsed has no details.
            for detail, outcome in zip(
                item.details or ("",) * len(item.outcomes), item.outcomes, strict=True
            )
            if outcome is not Outcome.ERROR
        ]
        levels: dict[str, dict[str, int]] = {}
        for detail, correct in details:
            reading = MatchedReading.from_text(detail)
            level = "unread" if reading is None else f"{reading.level} {reading.by}"
            entry = levels.setdefault(level, {"answers": 0, "correct": 0})
            entry["answers"] += 1
            entry["correct"] += correct
        ordered = dict(sorted(levels.items(), key=lambda level: -level[1]["answers"]))
        return {"extraction": ordered, "reading": summarise(detail for detail, _ in details)}

    def as_json(self) -> dict[str, Any]:
        """Return the entry in ``metrics.json``: numbers, protocol fingerprint and data hash."""
        counts = self.result.counts
        official = counts_all_items(self.result.scorer)
        return {
            **summarize(self.result),
            **({"resolved_rate": accuracy(counts.correct, counts.total)} if official else {}),
            **self.reading(),
            "protocol_fingerprint": self.fingerprint,
            "data_hash": self.data_hash,
            **({"excluded": self.excluded} if self.excluded else {}),
        }


def measure(
    planned: PlannedResult,
    variant: ProtocolVariant,
    model: str,
    items: Mapping[str, ItemOutcomes],
    model_fingerprint: str | None,
) -> Measurement:
    """Aggregate the outcomes of items under a variant of a planned result into a measurement.

    Outcomes beyond the variant's samples belong to items lost before the variant was known.
    """
    most = max(other.samples for other in planned.variants)
    if most > variant.samples:
        items = {
            name: replace(item, outcomes=item.outcomes[: variant.samples])
            if variant.samples < len(item.outcomes) <= most
            else item
            for name, item in items.items()
        }
    result = aggregate(
        items.values(),
        model=model,
        benchmark=planned.benchmark,
        scorer=variant.scorer,
        protocol=variant.name,
        chance=planned.chance,
        sizes=planned.subjects,
        samples=variant.samples,
        drawn=planned.drawn,
    )
    return Measurement(
        result,
        items,
        variant.protocol,
        variant.fingerprint,
        planned.protocols,
        planned.data_hash,
        model_fingerprint,
        shares_responses=planned.responses_of is not None,
        excluded=planned.excluded,
    )


def scorer_disagreements(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Describe disagreements between scorers of the same responses, one line per other scorer."""
    prefix = _model_prefix(measurements)
    for other in measurements:
        if not other.shares_responses:
            continue
        for first in measurements:
            source = (first.result.model, first.result.benchmark, _without_scorer(first.protocol))
            if first.shares_responses or source != (
                other.result.model,
                other.result.benchmark,
                _without_scorer(other.protocol),
            ):
                continue
            pairs = [
                (mine is Outcome.CORRECT, theirs is Outcome.CORRECT)
                for item, outcomes in first.items.items()
                if item in other.items
                for mine, theirs in zip(outcomes.outcomes, other.items[item].outcomes, strict=False)
            ]
            more, less = pairs.count((False, True)), pairs.count((True, False))
            yield (
                f"{prefix(other)}{other.result.benchmark}: of {len(pairs):,} answers"
                f" {other.result.scorer} counts {more:,} as right that {first.result.scorer} does"
                f" not, and {less:,} the other way round"
            )


def extraction_summary(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Describe how scorers with details extracted the answers, one line per result."""
    prefix = _model_prefix(measurements)
    for measurement in measurements:
        extraction = measurement.reading().get("extraction")
        if extraction is not None:
            levels = ", ".join(
                f"{level} {counts['answers']:,}" for level, counts in extraction.items()
            )
            yield f"{prefix(measurement)}{measurement.name}: answers read as {levels}"


def exclusions(measurements: Iterable[Measurement]) -> list[str]:
    """Describe the items that benchmarks exclude from their data, one line per benchmark."""
    lines = (
        f"{measurement.result.benchmark}: {measurement.excluded}"
        for measurement in measurements
        if measurement.excluded
    )
    return list(dict.fromkeys(lines))


def _model_prefix(measurements: Sequence[Measurement]) -> Callable[[Measurement], str]:
    """Return a function that gives the model as a prefix of a line, if there are several models."""
    several = len({measurement.result.model for measurement in measurements}) > 1
    return lambda measurement: f"{measurement.result.model} " if several else ""


def _without_scorer(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in protocol.items() if not name.startswith("scorer")}


def count_answers(measurements: Iterable[Measurement]) -> int:
    """Return the number of answers and errors, as stored in ``run.json`` at the end of a run."""
    return sum(measurement.result.counts.attempted for measurement in measurements)
