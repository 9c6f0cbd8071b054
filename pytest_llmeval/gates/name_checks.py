"""Checks of the names in a thresholds file against the collected benchmarks, before weights load."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import NamedTuple

from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.validation import dotted_key
from pytest_llmeval.core.validation import located_error
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import CleanGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.thresholds import SubjectGates
from pytest_llmeval.gates.thresholds import Thresholds
from pytest_llmeval.gates.thresholds import pass_key
from pytest_llmeval.metrics import hybrid_weights
from pytest_llmeval.scorers import counts_all_items


@dataclass(frozen=True, slots=True)
class CollectedBenchmark:
    """Properties of a collected benchmark that gates depend on."""

    name: str
    sizes: Mapping[str, int]
    """Subject → number of items in the whole benchmark, selected or not."""
    scorers: tuple[str, ...]
    chance: float | None
    """Chance level, a proportion; None if the benchmark has none."""
    samples: int = 1
    """Answers per item: the maximum over its scorers."""


def collected_benchmarks(
    results: Iterable[tuple[str, str, Mapping[str, int], float | None, int]],
) -> dict[str, CollectedBenchmark]:
    """Merge the planned results, (benchmark, scorer, sizes, chance, samples), by benchmark."""
    benchmarks: dict[str, CollectedBenchmark] = {}
    for name, scorer, sizes, chance, samples in results:
        if name in benchmarks:
            scorers = tuple(dict.fromkeys((*benchmarks[name].scorers, scorer)))
            samples = max(samples, benchmarks[name].samples)
        else:
            scorers = (scorer,)
        benchmarks[name] = CollectedBenchmark(name, dict(sizes), scorers, chance, samples)
    return benchmarks


class EarlierNames(NamedTuple):
    """Names of models and benchmarks in earlier runs."""

    models: frozenset[str] = frozenset()
    benchmarks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names that a thresholds file may refer to."""

    benchmarks: Collection[str]
    """Names of the catalog."""
    scorers: Collection[str] = ()
    tests: Mapping[str, str] = field(default_factory=dict)
    """Name of a test function → the benchmark it evaluates."""
    models: Mapping[str, str] | None = None
    """Spec of a model of this run → its printed name; None if models are known only later."""
    earlier: Callable[[], EarlierNames] = EarlierNames
    """Called only for names that are not known otherwise."""


def check_names(
    thresholds: Thresholds, valid: KnownNames, collected: Mapping[str, CollectedBenchmark]
) -> None:
    """Raise ConfigError for the first unknown name or impossible metric in the file.

    The name of a table must be a benchmark of the catalog, of this run or of an earlier one, unless
    the table has ``required = false``; the same holds for models. Subjects and scorers are checked
    for collected benchmarks only, because those of other benchmarks are not known.
    """
    for place, name, table in thresholds.tables():
        if name in collected:
            _check_collected(thresholds.file, place, table, collected[name], valid.scorers)
        elif not (
            name in valid.benchmarks
            or _declared_absent(thresholds, name)
            or name in valid.earlier().benchmarks
        ):
            problem = _unknown_benchmark(name, place, valid, collected)
            raise located_error(thresholds.file, place, problem)
        _check_twin(thresholds.file, place, name, table, valid, collected)
    if valid.models is not None:
        for model in unknown_models(thresholds, valid.models, valid.earlier):
            problem = _unknown_model(model, valid.models, valid.earlier().models)
            raise located_error(thresholds.file, ("models", model), problem)


def unknown_models(
    thresholds: Thresholds, models: Collection[str], earlier: Callable[[], EarlierNames]
) -> list[str]:
    """Return the models that have a table in the file but are in no run, unless not required."""
    return [
        name
        for name, table in thresholds.models.items()
        if name not in models and table.required is not False and name not in earlier().models
    ]


def _check_twin(
    file: str,
    place: tuple[str, ...],
    name: str,
    table: BenchmarkGates,
    valid: KnownNames,
    collected: Mapping[str, CollectedBenchmark],
) -> None:
    """Raise ConfigError for a twin that is the benchmark itself or has an unknown name."""
    if table.twin is None:
        return
    twin, where = table.twin.of, (*place, "twin", "of")
    if twin == name:
        raise located_error(file, where, f"{twin!r} is the benchmark itself")
    names = {*valid.benchmarks, *collected}
    if twin not in names and twin not in valid.earlier().benchmarks:
        raise located_error(file, where, f"unknown benchmark {twin!r}{suggestion(twin, names)}")


_ELSEWHERE = "add required = false to the table if another command evaluates it"
_PRINTED = re.compile(r"([^\[\]]+)\[([^\[\]]+)\]")


def _unknown_benchmark(
    name: str,
    place: tuple[str, ...],
    valid: KnownNames,
    collected: Mapping[str, CollectedBenchmark],
) -> str:
    """Explain an unknown benchmark as the name of a result, gate or test, or as a misspelling."""
    names = {*valid.benchmarks, *collected}
    printed = _PRINTED.fullmatch(name)
    if printed and printed[1] in names:
        table = dotted_key((*place[:-1], printed[1], "scorers", printed[2]))
        return f"{name!r} is a benchmark under one scorer: write [{table}]"
    first, *inner = name.split("::")
    if inner and first in names:
        keys = [key for part in inner for key in part.split(".", 1)]
        return f"{name!r} is the name of a gate: write {dotted_key((*place[:-1], first, *keys))}"
    test = valid.tests.get(name) or valid.tests.get(name.rpartition("::")[2].partition("[")[0])
    if test is not None:
        table = dotted_key((*place[:-1], test))
        return f"{name!r} is a test; it evaluates benchmark {test!r}: write [{table}]"
    return _unknown(
        "benchmark", name, names, "not in the catalog, in this run or in an earlier one"
    )


def _unknown_model(model: str, models: Mapping[str, str], earlier: Collection[str]) -> str:
    """Explain an unknown model as the printed name of a spec, or as a misspelling."""
    spec = next((spec for spec, name in models.items() if name == model), None)
    if spec is not None:
        return f"{model!r} is the printed name of {spec!r}: write [{dotted_key(('models', spec))}]"
    return _unknown("model", model, {*models, *earlier}, "not in this run or in an earlier one")


def _unknown(kind: str, name: str, candidates: Collection[str], where: str) -> str:
    """Suggest names that begin with the unknown name, or the nearest spelling."""
    longer = [other for other in sorted(candidates) if other.startswith(name)][:3]
    near = nearest(name, candidates)
    suggestions = " or ".join(map(repr, longer)) or (repr(near) if near is not None else "")
    if suggestions:
        return f"unknown {kind} {name!r}, did you mean {suggestions}? (Or {_ELSEWHERE}.)"
    return f"unknown {kind} {name!r}: {where} ({_ELSEWHERE})"


def _declared_absent(thresholds: Thresholds, name: str) -> bool:
    """Return True if a table of the benchmark has ``required = false``."""
    return any(table.required is False for _, other, table in thresholds.tables() if other == name)


def _check_collected(
    file: str,
    place: tuple[str, ...],
    table: BenchmarkGates,
    benchmark: CollectedBenchmark,
    known_scorers: Collection[str],
) -> None:
    if table.direct and len(benchmark.scorers) > 1:
        raise located_error(
            file,
            (*place, table.direct[0]),
            f"benchmark {benchmark.name!r} runs under {len(benchmark.scorers)} scorers"
            f" ({', '.join(benchmark.scorers)}): put its gates under"
            f" [{dotted_key((*place, 'scorers'))}.NAME]",
        )
    _check_gates(file, place, table, benchmark)
    for scorer, gates in table.scorers.items():
        where = (*place, "scorers", scorer)
        # A known scorer that this benchmark does not use is judged as not run.
        if scorer not in benchmark.scorers and scorer not in known_scorers:
            names = {*benchmark.scorers, *known_scorers}
            raise located_error(
                file, where, f"unknown scorer {scorer!r}{suggestion(scorer, names)}"
            )
        _check_gates(file, where, gates, benchmark)
    for name in table.hybrids:
        for scorer in hybrid_weights(name):
            names = {*benchmark.scorers, *known_scorers}
            if scorer not in names:
                text = f"unknown scorer {scorer!r}{suggestion(scorer, names)}"
                raise located_error(file, (*place, "hybrids", name), text)


def _check_gates(
    file: str, place: tuple[str, ...], gates: ScorerGates, benchmark: CollectedBenchmark
) -> None:
    for subject in gates.subjects:
        if subject not in benchmark.sizes:
            raise located_error(
                file,
                (*place, "subjects", subject),
                f"benchmark {benchmark.name!r} has no subject {subject!r}"
                f"{suggestion(subject, benchmark.sizes)}",
            )
    _check_bounds(file, place, gates, benchmark)
    if gates.every_subject is not None:
        _check_bounds(file, (*place, "every_subject"), gates.every_subject, benchmark)
    for subject, table in gates.subjects.items():
        _check_bounds(file, (*place, "subjects", subject), table, benchmark)
    if gates.clean is not None:
        _check_bounds(file, (*place, "clean"), gates.clean, benchmark)


def _check_bounds(
    file: str,
    place: tuple[str, ...],
    gates: ScorerGates | SubjectGates | CleanGates,
    benchmark: CollectedBenchmark,
) -> None:
    """Raise ConfigError for gates that need a chance level or more samples than there are."""
    for metric, bound in gates.bounds().items():
        if benchmark.chance is None and (bound.chance or metric == "normalized_gain"):
            raise located_error(
                file,
                (*place, metric),
                f"benchmark {benchmark.name!r} has no chance level (not every item has options)",
            )
        if metric == "resolved_rate" and not any(map(counts_all_items, benchmark.scorers)):
            raise located_error(
                file,
                (*place, metric),
                f"benchmark {benchmark.name!r} has no patches to resolve: write accuracy",
            )
        key = pass_key(metric)
        if key is not None and key[1] > benchmark.samples:
            k = key[1]
            raise located_error(
                file, (*place, metric), f"{metric} needs at least {k} samples: --llm-samples {k}"
            )
