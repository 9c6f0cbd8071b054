"""Comparison of stored runs: which results belong together, and whether they may be compared."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import compare_items
from pytest_llmeval.metrics import holm
from pytest_llmeval.runs.run import Measurement
from pytest_llmeval.runs.run import Run

_SHOWN_FIELDS = 8
_SHOWN_CHARACTERS = 40


class MismatchError(ConfigError):
    """Two runs of different protocols or data: their numbers say nothing about the models."""


class _Absent:
    """The value of a field that one side does not have."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field in which two results that belong together differ, such as ``shots`` 5 against 0.

    ``result`` is named as ``mmlu[letter]``; ``field`` is a path into the protocol
    (``template.question``), or ``data`` for the content hash.
    """

    result: str
    field: str
    baseline: Any
    candidate: Any

    @property
    def text(self) -> str:
        """The field with both values, shortened to where they differ."""
        one, other = _shown(self.baseline, self.candidate)
        return f"{self.field} {one} against {other}"


@dataclass(frozen=True)
class RunComparison:
    """Two runs, result by result and item by item.

    ``mismatches`` is empty unless they were allowed for; numbers of a result with mismatches are
    no ground for a verdict. ``only_baseline`` and ``only_candidate`` name the results that the
    other run lacks, as ``mmlu[letter]``, with the model in front where the run has several.
    """

    baseline: str
    candidate: str
    comparisons: tuple[Comparison, ...]
    mismatches: tuple[Mismatch, ...] = ()
    only_baseline: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()

    def comparable(self, comparison: Comparison) -> bool:
        """Whether both sides ran under the same protocol on the same data."""
        return not self.differences(comparison)

    def differences(self, comparison: Comparison) -> list[Mismatch]:
        """In what the two sides differ though they must not."""
        name = f"{comparison.benchmark}[{comparison.scorer}]"
        return [mismatch for mismatch in self.mismatches if mismatch.result == name]

    def for_gates(self) -> dict[tuple[str, str, str], Comparison | str]:
        """By (candidate's model, benchmark, scorer) what gates are judged by.

        A string where there is no verdict, saying why.
        """
        found: dict[tuple[str, str, str], Comparison | str] = {}
        for comparison in self.comparisons:
            key = (comparison.candidate, comparison.benchmark, comparison.scorer)
            if differences := self.differences(comparison):
                texts = _listed(mismatch.text for mismatch in differences)
                found[key] = f"protocols or data differ ({texts}): no verdict"
            elif key in found:
                found[key] = f"{self.baseline} has several models, none of them {key[0]}"
            else:
                found[key] = comparison
        return found


@dataclass(frozen=True)
class Standing:
    """A row of a league table: one model of one run.

    ``against_best`` is the paired difference to the first row, its ``adjusted`` p value
    Holm-adjusted over all rows but the first; None in the first row, and where no row is first.
    """

    run: str
    model: str
    result: Result
    against_best: Difference | None


@dataclass(frozen=True)
class League:
    """Several runs under one (benchmark, scorer), best accuracy first.

    Runs with fewer answers than others follow those, and runs with errors come last: a part of
    the items may be the easy one. ``mismatches`` as in a RunComparison, each with the run's
    name before the field. ``same_items`` false: accuracies are not over the same items.
    """

    benchmark: str
    scorer: str
    standings: tuple[Standing, ...]
    mismatches: tuple[Mismatch, ...] = ()
    same_items: bool = True


def compare(baseline: Run, candidate: Run, *, allow_mismatch: bool = False) -> RunComparison:
    """Pair the results of two runs and compare them item by item.

    Results of the same benchmark and scorer belong together. Models are paired by name; a
    model without a namesake is paired with the other run's model if that has only one.

    Raises MismatchError, naming the differing fields with both values, where results that
    belong together differ in protocol or data (``allow_mismatch`` compares all the same), and
    ConfigError where nothing belongs together.
    """
    names = (run_name(baseline.path), run_name(candidate.path))
    left, right = _by_model(baseline), _by_model(candidate)
    pairs: list[tuple[Measurement, Measurement]] = []
    for one, other in _pair_models(names, list(left), list(right)):
        pairs += [(left[one][key], right[other][key]) for key in left[one] if key in right[other]]
    if not pairs:
        raise ConfigError(
            f"{names[0]} and {names[1]} have no result in common:"
            f" {_contents(left)} against {_contents(right)}"
        )
    mismatches = _mismatches(pairs)
    if mismatches and not allow_mismatch:
        raise _refusal(names[0], names[1], mismatches)
    return RunComparison(
        *names,
        comparisons=tuple(_compare_pair(one, other) for one, other in pairs),
        mismatches=tuple(mismatches),
        only_baseline=_unpaired(left, [one for one, _ in pairs]),
        only_candidate=_unpaired(right, [other for _, other in pairs]),
    )


def check_comparable(
    baseline: Run,
    planned: Sequence[Measurement],
    models: Sequence[str] | None,
    allow_mismatch: bool,
) -> None:
    """See before a run starts that its results can be compared with a baseline's.

    ``planned`` has no items yet; ``models`` is None where their names are not known. Raises what
    ``compare`` would.
    """
    if models is not None:
        names = (f"baseline {run_name(baseline.path)}", "this run")
        list(_pair_models(names, list(_by_model(baseline)), list(models)))
    own = {(one.result.benchmark, one.result.scorer): one for one in planned}
    found = [(one, (one.result.benchmark, one.result.scorer)) for one in baseline.measurements()]
    pairs = [(one, own[key]) for one, key in found if key in own]
    name = run_name(baseline.path)
    if not pairs:
        has, runs = (
            ", ".join(dict.fromkeys(m.name for m in side))
            for side in (baseline.measurements(), planned)
        )
        raise ConfigError(
            f"baseline {name} has {has or 'nothing'}, this run {runs}: none in common"
        )
    mismatches = _mismatches(pairs)
    if mismatches and not allow_mismatch:
        raise _refusal(f"baseline {name}", "this run", mismatches)


def league(runs: Sequence[Run], *, allow_mismatch: bool = False) -> list[League]:
    """The standings of every (benchmark, scorer) of the runs, each against the best.

    Raises MismatchError where a run differs from the first that has the result in protocol or
    data, unless ``allow_mismatch``; then rows have no p value that means anything, as in
    ``compare``.
    """
    groups: dict[tuple[str, str], list[tuple[str, Measurement]]] = {}
    for run in runs:
        for one in run.measurements():
            key = (one.result.benchmark, one.result.scorer)
            groups.setdefault(key, []).append((run_name(run.path), one))
    tables = []
    for (benchmark, scorer), entries in groups.items():
        mismatches: list[Mismatch] = []
        (first_name, first), *others = entries
        for name, one in others:
            found = _mismatches([(first, one)])
            if found and not allow_mismatch:
                raise _refusal(first_name, name, found)
            mismatches += [replace(entry, field=f"{name}: {entry.field}") for entry in found]
        same = all(one.items.keys() == first.items.keys() for _, one in others)
        tables.append(League(benchmark, scorer, _standings(entries), tuple(mismatches), same))
    return tables


def differing_fields(
    baseline: Mapping[str, Any], candidate: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """The fields of two nested documents that differ, as (path, value, other value).

    Shallow fields first, otherwise in the order of the documents. ``ABSENT`` stands for a field
    that one side lacks; a tuple and a list of the same values are equal, as they are in JSON.
    """
    found = list(_walk((), baseline, candidate))
    found.sort(key=lambda entry: len(entry[0]))
    return [(".".join(path), one, other) for path, one, other in found]


def describe_differences(differences: Iterable[tuple[str, Any, Any]]) -> str:
    """Differing fields on one line: ``shots 5 against 0; template.delimiter ' ' against ''``."""
    return _listed(Mismatch("", *difference).text for difference in differences)


def run_name(path: Path) -> str:
    """A run's path as one would type it from here."""
    here, whole = Path.cwd(), Path.cwd() / path
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def protocol_differences(one: Measurement, other: Measurement) -> list[tuple[str, Any, Any]]:
    """The fields in which two results must not differ but do; empty if they may be compared."""
    found: list[tuple[str, Any, Any]] = []
    if one.fingerprint != other.fingerprint:
        found = differing_fields(one.protocol, other.protocol)
        # Documents can agree where fingerprints differ when one was edited, or is of a version
        # of this tool that counts other fields in.
        found = found or [("protocol fingerprint", one.fingerprint, other.fingerprint)]
    if one.data_hash != other.data_hash:
        found.append(("data", one.data_hash, other.data_hash))
    # Letters read from the likeliest tokens are not log-likelihoods, nor is a chat plain text.
    ask = one.protocol["ask"]
    told = ask == "choices" or (one.asked and other.asked)
    if told and one.asked != other.asked:
        found.append(("asked by", one.asked or ask, other.asked or ask))
    return found


# Pairing ---------------------------------------------------------------------------------


def _by_model(run: Run) -> dict[str, dict[tuple[str, str], Measurement]]:
    found: dict[str, dict[tuple[str, str], Measurement]] = {}
    for one in run.measurements():
        found.setdefault(one.result.model, {})[one.result.benchmark, one.result.scorer] = one
    return found


def _pair_models(
    names: tuple[str, str], left: list[str], right: list[str]
) -> Iterator[tuple[str, str]]:
    same = set(left) & set(right)
    if not same and len(left) > 1 and len(right) > 1:
        raise ConfigError(
            f"{names[0]} and {names[1]} have no model in common: {', '.join(left)} against"
            f" {', '.join(right)}; several models are paired by name"
        )
    for other in right:
        if other in same:
            yield other, other
        elif len(left) == 1 or (len(right) == 1 and not same):
            yield from ((one, other) for one in left)


def _unpaired(
    models: Mapping[str, Mapping[tuple[str, str], Measurement]], paired: Iterable[Measurement]
) -> tuple[str, ...]:
    seen = {id(one) for one in paired}
    return tuple(
        one.name if len(models) == 1 else f"{model}: {one.name}"
        for model, results in models.items()
        for one in results.values()
        if id(one) not in seen
    )


def _contents(models: Mapping[str, Mapping[tuple[str, str], Measurement]]) -> str:
    names = dict.fromkeys(one.name for results in models.values() for one in results.values())
    return ", ".join(names) or "nothing"


# Comparing -------------------------------------------------------------------------------


def _compare_pair(baseline: Measurement, candidate: Measurement) -> Comparison:
    sizes = {subject: baseline.result.items(subject) for subject in baseline.result.subjects}
    for subject in candidate.result.subjects:  # others only where other data was allowed
        sizes[subject] = max(sizes.get(subject, 0), candidate.result.items(subject))
    try:
        return compare_items(
            baseline.items,
            candidate.items,
            benchmark=baseline.result.benchmark,
            scorer=baseline.result.scorer,
            baseline_model=baseline.result.model,
            candidate_model=candidate.result.model,
            sizes=sizes,
            drawn=baseline.result.sampled or candidate.result.sampled,
        )
    except ValueError as error:  # an item that changed its subject: other data was allowed
        raise MismatchError(f"{baseline.name} cannot be compared: {error}") from None


def _standings(entries: Sequence[tuple[str, Measurement]]) -> tuple[Standing, ...]:
    most = max(one.result.counts.answered for _, one in entries)
    # Sorting is stable: equal accuracies stay in the order given.
    ranked = sorted(entries, key=lambda entry: _rank(entry[1].result, most))
    best = ranked[0][1]
    if best.result.accuracy is None:
        return tuple(Standing(name, one.result.model, one.result, None) for name, one in ranked)
    differences = [_compare_pair(best, one).overall for _, one in ranked[1:]]
    adjusted = holm([difference.p_value for difference in differences])
    against = [
        replace(difference, adjusted=p) for difference, p in zip(differences, adjusted, strict=True)
    ]
    return tuple(
        Standing(name, one.result.model, one.result, difference)
        for (name, one), difference in zip(ranked, [None, *against], strict=True)
    )


def _rank(result: Result, most: int) -> tuple[bool, bool, float]:
    value = result.accuracy
    return value is None, result.counts.answered < most, -(value or 0.0)


# Mismatches ------------------------------------------------------------------------------


def _mismatches(pairs: Iterable[tuple[Measurement, Measurement]]) -> list[Mismatch]:
    """Every difference once, however many models ran under the same two protocols."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for one, other in pairs:
        about = (one.name, one.fingerprint, other.fingerprint, one.data_hash, other.data_hash)
        if about not in seen:
            seen.add(about)
            found += [Mismatch(one.name, *entry) for entry in protocol_differences(one, other)]
    return found


def _refusal(one: str, other: str, mismatches: Sequence[Mismatch]) -> MismatchError:
    by_result: dict[str, list[str]] = {}
    for mismatch in mismatches:
        by_result.setdefault(mismatch.result, []).append(mismatch.text)
    texts = "; ".join(f"{name}: {_listed(fields)}" for name, fields in by_result.items())
    return MismatchError(f"{one} and {other} cannot be compared: {texts}")


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    more = len(every) - _SHOWN_FIELDS
    return "; ".join(every[:_SHOWN_FIELDS] + ([f"and {more} more fields"] if more > 0 else []))


def _walk(
    path: tuple[str, ...], one: Any, other: Any
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            yield from _walk((*path, key), one.get(key, ABSENT), other.get(key, ABSENT))
    elif _plain(one) != _plain(other):
        yield path, one, other


def _plain(value: Any) -> Any:
    """The value with every tuple a list, and true and false told apart from 1 and 0."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return (value,) if isinstance(value, bool) else value


def _shown(one: Any, other: Any) -> tuple[str, str]:
    """Both values on one line each, cut to the neighbourhood of their first difference."""
    texts = repr(one), repr(other)
    if max(map(len, texts)) <= _SHOWN_CHARACTERS:
        return texts
    pairs = zip(*texts, strict=False)
    first = next((at for at, (a, b) in enumerate(pairs) if a != b), min(map(len, texts)))
    start = max(0, first - _SHOWN_CHARACTERS // 4)
    return _cut(texts[0], start), _cut(texts[1], start)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN_CHARACTERS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
