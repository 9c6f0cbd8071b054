"""Names in a thresholds file against what was collected: told before any weights load."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.metrics import hybrid_weights
from pytest_llmeval.spelling import nearest
from pytest_llmeval.spelling import suggestion

from .mistakes import dotted
from .mistakes import located
from .mistakes import mistake
from .thresholds import BenchmarkGates
from .thresholds import ScorerGates
from .thresholds import SubjectGates
from .thresholds import Thresholds
from .thresholds import pass_key


@dataclass(frozen=True, slots=True)
class CollectedBenchmark:
    """What the gates need to know about a benchmark that this run collected.

    ``sizes``: subject → items, of all of the benchmark, selected or not. ``samples``: answers
    per item, the most that any of its scorers asks for. ``chance`` is its chance level, if any.
    """

    name: str
    sizes: Mapping[str, int]
    scorers: tuple[str, ...]
    chance: float | None
    samples: int = 1


def collected_benchmarks(
    results: Iterable[tuple[str, str, Mapping[str, int], float | None, int]],
) -> dict[str, CollectedBenchmark]:
    """What a run evaluates, by benchmark, from its (benchmark, scorer, sizes, chance, samples)."""
    found: dict[str, CollectedBenchmark] = {}
    for name, scorer, sizes, chance, samples in results:
        others = found[name].scorers if name in found else ()
        scorers = tuple(dict.fromkeys((*others, scorer)))
        most = max(samples, found[name].samples) if name in found else samples
        found[name] = CollectedBenchmark(name, dict(sizes), scorers, chance, most)
    return found


def check_names(
    thresholds: Thresholds,
    known_benchmarks: Iterable[str],
    collected: Mapping[str, CollectedBenchmark],
    known_scorers: Iterable[str] = (),
) -> None:
    """Raise ConfigError for the first name or metric in the file that cannot be right.

    Subjects and scorers are checked for collected benchmarks only: those of the others are not
    known. A benchmark that is neither known nor collected may be one of the user's own in a
    test file that this command leaves out, so only a name like another is refused.
    """
    known = {*known_benchmarks, *collected}
    scorers = frozenset(known_scorers)
    named = {name for _, name, _ in thresholds.tables()}
    for place, name, table in thresholds.tables():
        if name in collected:
            _check_collected(thresholds.file, place, table, collected[name], scorers)
        elif name not in known and not _declared_absent(thresholds, name):
            meant = _meant(name, known, named)
            if meant is not None:
                raise mistake(
                    thresholds.file,
                    place,
                    f"unknown benchmark {name!r}, did you mean {meant!r}? (If it is one that"
                    f" this command does not collect, add required = false to its table.)",
                )


def unused_models(thresholds: Thresholds, models: Iterable[str]) -> list[str]:
    """One line for each table of a model that did not run but is called much like one that did."""
    run = list(models)
    lines = []
    for name in thresholds.models:
        meant = None if name in run else nearest(name, set(run), cutoff=0.85)
        if meant is not None:
            text = f"applies to no model of this run, did you mean {meant!r}?"
            lines.append(located(thresholds.file, ("models", name), text))
    return lines


def _declared_absent(thresholds: Thresholds, name: str) -> bool:
    """Whether the file says in so many words that the benchmark may be absent."""
    return any(
        "required" in table.model_fields_set and not table.required
        for _, other, table in thresholds.tables()
        if other == name
    )


def _meant(name: str, known: set[str], named: set[str]) -> str | None:
    """The known benchmark that this name misspells, if it looks like a misspelling.

    A known name that has a table of its own in the file, such as ``faq_de`` beside ``faq_en``,
    is meant only where one slip of the fingers separates the two.
    """
    slip = next((other for other in sorted(known & named) if _one_slip(name, other)), None)
    return slip or nearest(name, known - named, cutoff=0.7)


def _one_slip(a: str, b: str) -> bool:
    """Whether a swap of neighbours, or one letter too many or too few, makes b of a.

    A digit makes another version, not a slip: ``faq`` and ``faq2`` are two benchmarks.
    """
    if len(a) == len(b):
        pairs = [i for i in range(len(a)) if a[i] != b[i]]
        return a.casefold() == b.casefold() or (
            len(pairs) == 2 and pairs[1] == pairs[0] + 1 and sorted(a) == sorted(b)
        )
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        long[:i] + long[i + 1 :] == short and not long[i].isdigit() for i in range(len(long))
    )


def _check_collected(
    file: str,
    place: tuple[str, ...],
    table: BenchmarkGates,
    benchmark: CollectedBenchmark,
    known_scorers: frozenset[str],
) -> None:
    if table.direct and len(benchmark.scorers) > 1:
        raise mistake(
            file,
            (*place, table.direct[0]),
            f"benchmark {benchmark.name!r} runs under {len(benchmark.scorers)} scorers"
            f" ({', '.join(benchmark.scorers)}): put its gates under"
            f" [{dotted((*place, 'scorers'))}.NAME]",
        )
    _check_gates(file, place, table, benchmark)
    for scorer, gates in table.scorers.items():
        where = (*place, "scorers", scorer)
        # A known scorer that this benchmark does not run under is judged as not run.
        if scorer not in benchmark.scorers and scorer not in known_scorers:
            names = {*benchmark.scorers, *known_scorers}
            raise mistake(file, where, f"unknown scorer {scorer!r}{suggestion(scorer, names)}")
        _check_gates(file, where, gates, benchmark)
    for name in table.hybrids:
        for scorer in hybrid_weights(name):
            names = {*benchmark.scorers, *known_scorers}
            if scorer not in names:
                text = f"unknown scorer {scorer!r}{suggestion(scorer, names)}"
                raise mistake(file, (*place, "hybrids", name), text)


def _check_gates(
    file: str, place: tuple[str, ...], gates: ScorerGates, benchmark: CollectedBenchmark
) -> None:
    for subject in gates.subjects:
        if subject not in benchmark.sizes:
            raise mistake(
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


def _check_bounds(
    file: str,
    place: tuple[str, ...],
    gates: ScorerGates | SubjectGates,
    benchmark: CollectedBenchmark,
) -> None:
    """Refuse what this benchmark cannot have: a chance level, or enough samples."""
    for metric, bound in gates.bounds().items():
        if benchmark.chance is None and (bound.chance or metric == "normalized_gain"):
            raise mistake(
                file,
                (*place, metric),
                f"benchmark {benchmark.name!r} has no chance level (not every item has options)",
            )
        key = pass_key(metric)
        if key is not None and key[1] > benchmark.samples:
            k = key[1]
            raise mistake(
                file, (*place, metric), f"{metric} needs at least {k} samples: --llm-samples {k}"
            )
