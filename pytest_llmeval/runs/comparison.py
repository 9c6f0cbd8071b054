"""Comparison of stored runs: pairs their results and checks that these are comparable."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import compare_items
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.storage.folder import run_name

_MOST_FIELDS = 8
_MOST_CHARACTERS = 40


class MismatchError(ConfigError):
    """Two runs have different protocols or data: their numbers do not compare the models."""


class _AbsentType:
    """Type of the value of a field that one side does not have."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _AbsentType()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field in which two paired results differ, such as ``shots`` 5 against 0."""

    #: Name of the result, such as ``mmlu[letter]``.
    result: str
    #: Path into the protocol (``template.question``), or ``data`` for the content hash.
    field: str
    baseline: Any
    candidate: Any
    #: The baseline's and the candidate's, if only these two differ.
    models: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """Field and both values, shortened to where they differ."""
        baseline, candidate = _shortened_pair(self.baseline, self.candidate)
        return f"{self.field} {baseline} against {candidate}"

    def as_json(self) -> dict[str, Any]:
        """Return the difference as plain JSON values."""
        # default=repr: `ABSENT` has no JSON value.
        value: dict[str, Any] = json.loads(json.dumps(asdict(self), default=repr))
        if self.models is None:
            del value["models"]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Mismatch:
        """Construct a difference from ``as_json``. Raises TypeError for other fields."""
        models = value.get("models")
        return cls(**{**value, "models": None if models is None else tuple(models)})


def differing_fields(
    baseline: Mapping[str, Any], candidate: Mapping[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Return the fields of two nested documents that differ, as (path, value, other value).

    Shallow fields come first, otherwise in the order of the documents. A missing field has the value
    ``ABSENT``; a tuple and a list of the same values are equal, as in JSON.
    """
    differences = list(_walk((), baseline, candidate))
    differences.sort(key=lambda entry: len(entry[0]))
    return [(".".join(path), value, other) for path, value, other in differences]


def describe_differences(differences: Iterable[tuple[str, Any, Any]]) -> str:
    """Return differences on one line: ``shots 5 against 0; template.delimiter ' ' against ''``."""
    return shortened_list(Mismatch("", *difference).text for difference in differences)


def protocol_differences(
    baseline: Measurement, candidate: Measurement
) -> list[tuple[str, Any, Any]]:
    """Return the differences that make two results incomparable; empty if they are comparable."""
    differences: list[tuple[str, Any, Any]] = []
    if baseline.fingerprint != candidate.fingerprint:
        differences = differing_fields(baseline.protocol, candidate.protocol)
        # Equal documents can have different fingerprints if one was edited, or written by a version
        # of this tool that includes other fields.
        differences = differences or [
            ("protocol fingerprint", baseline.fingerprint, candidate.fingerprint)
        ]
    if baseline.data_hash != candidate.data_hash:
        differences.append(("data", baseline.data_hash, candidate.data_hash))
    # Letters from top log-probabilities are not log-likelihoods, and a chat is not plain text.
    ask = baseline.protocol["ask"]
    modes = baseline.request_mode, candidate.request_mode
    if (ask == "choices" or all(modes)) and modes[0] != modes[1]:
        differences.append(("asked by", modes[0] or ask, modes[1] or ask))
    # A chat template without a date gives the same prompt on any day.
    days = baseline.template_date, candidate.template_date
    if baseline.protocol["chat"] and all(days) and days[0] != days[1]:
        differences.append(("date in the chat template", *days))
    return differences


def mismatches_of(pairs: Iterable[tuple[Measurement, Measurement]]) -> list[Mismatch]:
    """Return every difference once, for any number of models under the same two protocols."""
    seen: set[tuple[str, ...]] = set()
    mismatches = []
    for baseline, candidate in pairs:
        key = (
            *(
                baseline.name,
                baseline.fingerprint,
                candidate.fingerprint,
                baseline.data_hash,
                candidate.data_hash,
            ),
            *(baseline.template_date, candidate.template_date),
        )
        if key not in seen:
            seen.add(key)
            mismatches += [
                Mismatch(baseline.name, *entry)
                for entry in protocol_differences(baseline, candidate)
            ]
    return mismatches


def mismatch_error(baseline: str, candidate: str, mismatches: Sequence[Mismatch]) -> MismatchError:
    """Return the error that two runs, by their names, cannot be compared."""
    by_result: dict[str, list[str]] = {}
    for mismatch in mismatches:
        by_result.setdefault(mismatch.result, []).append(mismatch.text)
    texts = "; ".join(f"{name}: {shortened_list(fields)}" for name, fields in by_result.items())
    return MismatchError(f"{baseline} and {candidate} cannot be compared: {texts}")


def shortened_list(texts: Iterable[str]) -> str:
    """Return the first eight texts on one line, and the number of further ones."""
    every = list(texts)
    more = len(every) - _MOST_FIELDS
    return "; ".join(every[:_MOST_FIELDS] + ([f"and {more} more fields"] if more > 0 else []))


def _walk(
    path: tuple[str, ...], value: Any, other: Any
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*value, *other]):
            yield from _walk((*path, key), value.get(key, ABSENT), other.get(key, ABSENT))
    elif _plain(value) != _plain(other):
        yield path, value, other


def _plain(value: Any) -> Any:
    """Return the value with tuples as lists, and booleans distinct from 0 and 1."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return (value,) if isinstance(value, bool) else value


def _shortened_pair(value: Any, other: Any) -> tuple[str, str]:
    """Return both values on one line each, shortened to the context of their first difference."""
    texts = repr(value), repr(other)
    if max(map(len, texts)) <= _MOST_CHARACTERS:
        return texts
    pairs = zip(*texts, strict=False)
    first = next((at for at, (a, b) in enumerate(pairs) if a != b), min(map(len, texts)))
    start = max(0, first - _MOST_CHARACTERS // 4)
    return _cut(texts[0], start), _cut(texts[1], start)


def _cut(text: str, start: int) -> str:
    end = start + _MOST_CHARACTERS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


STOPPED = "answers"  # field of the mismatch of a run that stopped early

ALPHA = 0.05
"""Significance level, after Holm's adjustment."""


@dataclass(frozen=True)
class RunComparison:
    """Two runs, compared result by result and item by item."""

    baseline: str
    candidate: str
    comparisons: tuple[Comparison, ...]
    #: Empty unless they were allowed, or a side is not a measurement; the numbers of a result with
    #: mismatches do not justify a verdict.
    mismatches: tuple[Mismatch, ...] = ()
    #: Results that the other run lacks, as ``mmlu[letter]``, after the model if there are several.
    only_baseline: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()

    def comparable(self, comparison: Comparison) -> bool:
        """Return true if both sides ran under the same protocol on the same data."""
        return not self.differences(comparison)

    def differences(self, comparison: Comparison) -> list[Mismatch]:
        """Return the mismatches of a comparison."""
        models = (comparison.baseline, comparison.candidate)
        return [
            mismatch
            for mismatch in self.mismatches
            if mismatch.result == comparison.name and mismatch.models in (None, models)
        ]

    def for_gates(self) -> dict[tuple[str, str, str], Comparison | str]:
        """Return the comparisons for gates, by (candidate's model, benchmark, scorer).

        A string is the reason why there is no verdict.
        """
        comparisons: dict[tuple[str, str, str], Comparison | str] = {}
        for comparison in self.comparisons:
            key = (comparison.candidate, comparison.benchmark, comparison.scorer)
            # A sequential run decides its own gates before it has all items.
            differences = [
                mismatch
                for mismatch in self.differences(comparison)
                if mismatch.field != STOPPED or "stopped" in str(mismatch.baseline)
            ]
            if differences:
                texts = shortened_list(mismatch.text for mismatch in differences)
                comparisons[key] = f"protocols or data differ ({texts}): no verdict"
            elif key in comparisons:
                comparisons[key] = f"{self.baseline} has several models, none of them {key[0]}"
            else:
                comparisons[key] = comparison
        return comparisons

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``comparison.json``; ``comparable`` is false if there are mismatches."""
        return {
            "baseline": self.baseline,
            "candidate": self.candidate,
            "comparisons": [
                {**comparison.as_json(), "comparable": self.comparable(comparison)}
                for comparison in self.comparisons
            ],
            "mismatches": [mismatch.as_json() for mismatch in self.mismatches],
            "only_baseline": list(self.only_baseline),
            "only_candidate": list(self.only_candidate),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunComparison:
        """Construct a comparison from ``as_json``.

        Raises RunError for a document that lacks a field, such as one of another version.
        """
        try:
            return cls(
                document["baseline"],
                document["candidate"],
                tuple(map(Comparison.from_json, document["comparisons"])),
                tuple(map(Mismatch.from_json, document["mismatches"])),
                tuple(document["only_baseline"]),
                tuple(document["only_candidate"]),
            )
        except (KeyError, TypeError) as error:
            raise RunError(f"comparison.json: damaged, or of another version: {error}") from None


def compare(baseline: Run, candidate: Run, *, allow_mismatch: bool = False) -> RunComparison:
    """Pair the results of two runs and compare them item by item.

    Results of the same benchmark and scorer are paired. Models are paired by name; a
    model without a namesake is paired with the other run's model if that has only one.

    Raises MismatchError, naming the differing fields with both values, if paired results differ
    in protocol or data (``allow_mismatch`` compares them nevertheless), and ConfigError if there
    are no pairs.
    """
    names = (run_name(baseline.path), run_name(candidate.path))
    left, right = _by_model(baseline), _by_model(candidate)
    pairs: list[tuple[Measurement, Measurement]] = []
    for mine, theirs in _pair_models(names, list(left), list(right)):
        shared = [key for key in left[mine] if key in right[theirs]]
        pairs += [(left[mine][key], right[theirs][key]) for key in shared]
    if not pairs:
        raise ConfigError(
            f"{names[0]} and {names[1]} have no result in common:"
            f" {_contents(left)} against {_contents(right)}"
        )
    mismatches = mismatches_of(pairs)
    if mismatches and not allow_mismatch:
        raise mismatch_error(names[0], names[1], mismatches)
    mismatches += [unlike for pair in pairs if (unlike := _unmeasured(*pair))]
    mismatches += [unlike for pair in pairs if (unlike := _stopped(*pair))]
    return RunComparison(
        *names,
        comparisons=tuple(compare_pair(*pair) for pair in pairs),
        mismatches=tuple(mismatches),
        only_baseline=_unpaired(left, [measurement for measurement, _ in pairs]),
        only_candidate=_unpaired(right, [other for _, other in pairs]),
    )


def check_comparable(
    baseline: Run,
    planned: Sequence[Measurement],
    models: Sequence[str] | None,
    allow_mismatch: bool,
) -> None:
    """Check, before a run starts, that its results are comparable with a baseline's.

    ``planned`` has no items yet; ``models`` is None if their names are not known. Raises the errors
    of ``compare``.
    """
    if models is not None:
        names = (f"baseline {run_name(baseline.path)}", "this run")
        list(_pair_models(names, list(_by_model(baseline)), list(models)))
    own = {
        (measurement.result.benchmark, measurement.result.scorer): measurement
        for measurement in planned
    }
    pairs = [
        (measurement, own[key])
        for measurement in baseline.measurements()
        if (key := (measurement.result.benchmark, measurement.result.scorer)) in own
    ]
    name = run_name(baseline.path)
    if not pairs:
        has, runs = (
            ", ".join(dict.fromkeys(m.name for m in side))
            for side in (baseline.measurements(), planned)
        )
        raise ConfigError(
            f"baseline {name} has {has or 'nothing'}, this run {runs}: none in common"
        )
    mismatches = mismatches_of(pairs)
    if mismatches and not allow_mismatch:
        raise mismatch_error(f"baseline {name}", "this run", mismatches)


# Pairing ---------------------------------------------------------------------------------


def _by_model(run: Run) -> dict[str, dict[tuple[str, str], Measurement]]:
    models: dict[str, dict[tuple[str, str], Measurement]] = {}
    for measurement in run.measurements():
        result = measurement.result
        models.setdefault(result.model, {})[result.benchmark, result.scorer] = measurement
    return models


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
            yield from ((model, other) for model in left)


def _unpaired(
    models: Mapping[str, Mapping[tuple[str, str], Measurement]], paired: Iterable[Measurement]
) -> tuple[str, ...]:
    seen = {id(measurement) for measurement in paired}
    return tuple(
        measurement.name if len(models) == 1 else f"{model}: {measurement.name}"
        for model, results in models.items()
        for measurement in results.values()
        if id(measurement) not in seen
    )


def _contents(models: Mapping[str, Mapping[tuple[str, str], Measurement]]) -> str:
    names = dict.fromkeys(
        measurement.name for results in models.values() for measurement in results.values()
    )
    return ", ".join(names) or "nothing"


def _unmeasured(baseline: Measurement, candidate: Measurement) -> Mismatch | None:
    """Return a mismatch if a side is not a measurement, so that only other results give verdicts."""
    if baseline.result.is_measurement and candidate.result.is_measurement:
        return None
    baseline_rate, candidate_rate = (
        f"{s.result.counts.all_tied_rate or 0:.1%}" for s in (baseline, candidate)
    )
    models = (baseline.result.model, candidate.result.model)
    return Mismatch(
        baseline.name,
        "share of answers whose options all tie",
        baseline_rate,
        candidate_rate,
        models,
    )


def _stopped(baseline: Measurement, candidate: Measurement) -> Mismatch | None:
    """Return a mismatch if a run stopped early: its items were chosen by their outcomes."""
    sides = baseline.result, candidate.result
    if not any(side.stopped for side in sides):
        return None
    before, after = (f"stopped at {s.counts.attempted:,}" if s.stopped else "all" for s in sides)
    return Mismatch(baseline.name, STOPPED, before, after, (sides[0].model, sides[1].model))


# Comparing -------------------------------------------------------------------------------


def compare_pair(baseline: Measurement, candidate: Measurement) -> Comparison:
    """Compare two measurements item by item.

    Raises MismatchError if an item has another subject.
    """
    sizes = {subject: baseline.result.items(subject) for subject in baseline.result.subjects}
    for subject in candidate.result.subjects:  # others only if other data was allowed
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
            sampled=baseline.result.sampled or candidate.result.sampled,
        )
    except ValueError as error:  # an item has another subject: other data was allowed
        raise MismatchError(f"{baseline.name} cannot be compared: {error}") from None
