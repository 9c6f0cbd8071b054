"""What one model did on one benchmark under one scorer, and what measurements tell together."""

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
    """What hybrid scores are made of: the first of several samples, unless one is an error."""
    return {
        one.result.key: {
            name: Outcome.ERROR if Outcome.ERROR in item.outcomes else item.outcomes[0]
            for name, item in one.items.items()
        }
        for one in measurements
    }


def hybrids(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """The hybrid score of every model and benchmark that has all of the scorers, as JSON values.

    Without a score ``value`` is None and ``reason`` says why. None at all without ``weights``.
    """
    if not weights:
        return
    unmeasured = {
        one.result.key: f"{one.result.scorer} is {reason}"
        for one in measurements
        if (reason := measurement_problem(one.result.counts))
    }
    found: dict[tuple[str, str], dict[str, Mapping[str, Outcome]]] = {}
    for (model, benchmark, scorer), outcomes in first_outcomes(measurements).items():
        found.setdefault((model, benchmark), {})[scorer] = outcomes
    for (model, benchmark), own in found.items():
        if weights.keys() <= own.keys():
            about = {"model": model, "benchmark": benchmark, "name": hybrid_name(weights)}
            reasons = [unmeasured.get((model, benchmark, scorer)) for scorer in weights]
            hybrid = next(filter(None, reasons), None) or hybrid_or_reason(weights, own)
            if isinstance(hybrid, str):
                yield {**about, "value": None, "interval": None, "items": 0, "reason": hybrid}
            else:
                yield {**about, **asdict(hybrid), "interval": list(hybrid.interval)}


def hybrid_lines(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[str]:
    """The hybrid scores in words, one line for each."""
    return map(hybrid_line, hybrids(measurements, weights))


def hybrid_line(hybrid: Mapping[str, Any]) -> str:
    """A hybrid score in words."""
    name = f"{hybrid['benchmark']}: {hybrid['name']}"
    if hybrid["value"] is None:
        return f"{name} is not told: {hybrid['reason']}"
    low, high = hybrid["interval"]
    return f"{name} = {hybrid['value']:.4f}, between {low:.4f} and {high:.4f} (95 %)"


@dataclass(frozen=True)
class Measurement:
    """What one model did on one benchmark under one scorer, item by item.

    ``protocol`` in full and its ``fingerprint``, ``data_hash`` and ``model_fingerprint`` say what
    it may be compared with. ``protocols``: the fingerprints of its records, that of the first way
    too, under which an item is booked that was lost before the model showed how it can be asked.
    ``scored_again``: by another scorer of another's responses. ``asked``: how an endpoint was
    asked, where there are several ways (``top_logprobs``). ``excluded``: which items of the data the
    benchmark leaves out, in words. ``template_date``: the date that the model's chat template
    writes, empty where it writes none or is not known.
    """

    result: Result
    items: Mapping[str, ItemOutcomes]
    protocol: Mapping[str, Any]
    fingerprint: str
    protocols: frozenset[str]
    data_hash: str
    model_fingerprint: str | None
    scored_again: bool = False
    asked: str = ""
    excluded: str = ""
    template_date: str = ""

    @property
    def name(self) -> str:
        """The result's name, such as ``mmlu[letter]``."""
        return self.result.name

    def reading(self) -> dict[str, Any]:
        """How the answers were read, where the scorer tells: by level, and how sure that was."""
        told = [
            (detail, outcome is Outcome.CORRECT)
            for item in self.items.values()
            for detail, outcome in zip(item.details, item.outcomes, strict=False)
        ]
        if not told:
            return {}
        levels: dict[str, dict[str, int]] = {}
        for detail, correct in told:
            reading = MatchedReading.from_text(detail)
            level = "unread" if reading is None else f"{reading.level} {reading.by}"
            entry = levels.setdefault(level, {"answers": 0, "correct": 0})
            entry["answers"] += 1
            entry["correct"] += correct
        ordered = dict(sorted(levels.items(), key=lambda one: -one[1]["answers"]))
        return {"extraction": ordered, "reading": summarise(detail for detail, _ in told)}

    def as_json(self) -> dict[str, Any]:
        """The entry in ``metrics.json``: the numbers, and what they may be compared with."""
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
    way: ProtocolVariant,
    model: str,
    items: Mapping[str, ItemOutcomes],
    model_fingerprint: str | None,
) -> Measurement:
    """The measurement of a planned result, asked for in one of its ways, from its items' outcomes.

    Outcomes beyond the way's samples are those of an item lost before the way was known.
    """
    most = max(way.samples for way in planned.ways)
    if most > way.samples:
        items = {
            name: replace(item, outcomes=item.outcomes[: way.samples])
            if way.samples < len(item.outcomes) <= most
            else item
            for name, item in items.items()
        }
    result = aggregate(
        items.values(),
        model=model,
        benchmark=planned.benchmark,
        scorer=way.scorer,
        protocol=way.name,
        chance=planned.chance,
        sizes=planned.subjects,
        samples=way.samples,
        drawn=planned.drawn,
    )
    return Measurement(
        result,
        items,
        way.protocol,
        way.fingerprint,
        planned.protocols,
        planned.data_hash,
        model_fingerprint,
        scored_again=planned.responses_of is not None,
        excluded=planned.excluded,
    )


def disagreements(measurements: Sequence[Measurement]) -> Iterator[str]:
    """How far scorers of the same responses disagree, one line for every other scorer."""
    whose = _whose(measurements)
    for other in measurements:
        if not other.scored_again:
            continue
        for first in measurements:
            about = (first.result.model, first.result.benchmark, _without_scorer(first.protocol))
            if first.scored_again or about != (
                other.result.model,
                other.result.benchmark,
                _without_scorer(other.protocol),
            ):
                continue
            pairs = [
                (one is Outcome.CORRECT, another is Outcome.CORRECT)
                for item, outcomes in first.items.items()
                if item in other.items
                for one, another in zip(outcomes.outcomes, other.items[item].outcomes, strict=False)
            ]
            more, less = pairs.count((False, True)), pairs.count((True, False))
            yield (
                f"{whose(other)}{other.result.benchmark}: of {len(pairs):,} answers"
                f" {other.result.scorer} counts {more:,} as right that {first.result.scorer} does"
                f" not, and {less:,} the other way round"
            )


def how_read(measurements: Sequence[Measurement]) -> Iterator[str]:
    """How the scorers that tell it have read the answers, one line for every such result."""
    whose = _whose(measurements)
    for one in measurements:
        read = one.reading().get("extraction")
        if read is not None:
            levels = ", ".join(f"{level} {told['answers']:,}" for level, told in read.items())
            yield f"{whose(one)}{one.name}: answers read as {levels}"


def exclusions(measurements: Iterable[Measurement]) -> list[str]:
    """Which items the benchmarks leave out of their data, one line for every such benchmark."""
    lines = (f"{one.result.benchmark}: {one.excluded}" for one in measurements if one.excluded)
    return list(dict.fromkeys(lines))


def _whose(measurements: Sequence[Measurement]) -> Callable[[Measurement], str]:
    """What opens a sentence about a measurement: its model, where there are several."""
    several = len({one.result.model for one in measurements}) > 1
    return lambda one: f"{one.result.model} " if several else ""


def _without_scorer(protocol: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in protocol.items() if not name.startswith("scorer")}


def count_answers(measurements: Iterable[Measurement]) -> int:
    """How many answers and errors were counted: what ``run.json`` tells of a run at its end."""
    return sum(one.result.counts.attempted for one in measurements)
