"""Comparison of stored runs: which results belong together, and whether they may be compared."""

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
    (``template.question``), or ``data`` for the content hash. ``models``: the baseline's and the
    candidate's, of a difference that only these two have.
    """

    result: str
    field: str
    baseline: Any
    candidate: Any
    models: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """The field with both values, shortened to where they differ."""
        one, other = _shown(self.baseline, self.candidate)
        return f"{self.field} {one} against {other}"

    def as_json(self) -> dict[str, Any]:
        """The difference as plain JSON values."""
        # default=repr: a field that one side lacks has no JSON value of its own.
        value: dict[str, Any] = json.loads(json.dumps(asdict(self), default=repr))
        if self.models is None:
            del value["models"]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Mismatch:
        """The difference of ``as_json``. Raises TypeError for other fields."""
        models = value.get("models")
        return cls(**{**value, "models": None if models is None else tuple(models)})


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
    return listed(Mismatch("", *difference).text for difference in differences)


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
    # A model whose chat template writes no date has the same prompt under any.
    days = one.template_date, other.template_date
    if one.protocol["chat"] and all(days) and days[0] != days[1]:
        found.append(("date in the chat template", *days))
    return found


def mismatches_of(pairs: Iterable[tuple[Measurement, Measurement]]) -> list[Mismatch]:
    """Every difference once, however many models ran under the same two protocols."""
    seen: set[tuple[str, ...]] = set()
    found = []
    for one, other in pairs:
        about = (
            *(one.name, one.fingerprint, other.fingerprint, one.data_hash, other.data_hash),
            *(one.template_date, other.template_date),
        )
        if about not in seen:
            seen.add(about)
            found += [Mismatch(one.name, *entry) for entry in protocol_differences(one, other)]
    return found


def refusal(one: str, other: str, mismatches: Sequence[Mismatch]) -> MismatchError:
    """The error that two runs of these names differ so."""
    by_result: dict[str, list[str]] = {}
    for mismatch in mismatches:
        by_result.setdefault(mismatch.result, []).append(mismatch.text)
    texts = "; ".join(f"{name}: {listed(fields)}" for name, fields in by_result.items())
    return MismatchError(f"{one} and {other} cannot be compared: {texts}")


def listed(texts: Iterable[str]) -> str:
    """The first eight texts on one line, and how many more there are."""
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


ALPHA = 0.05
"""Level at which a difference is called significant, after Holm's adjustment."""


@dataclass(frozen=True)
class RunComparison:
    """Two runs, result by result and item by item.

    ``mismatches`` is empty unless they were allowed for, or a side is not a measurement; numbers of
    a result with mismatches are no ground for a verdict. ``only_baseline`` and ``only_candidate``
    name the results that the other run lacks, as ``mmlu[letter]``, with the model in front where
    the run has several.
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
        models = (comparison.baseline, comparison.candidate)
        return [
            one
            for one in self.mismatches
            if one.result == comparison.name and one.models in (None, models)
        ]

    def for_gates(self) -> dict[tuple[str, str, str], Comparison | str]:
        """By (candidate's model, benchmark, scorer) what gates are judged by.

        A string where there is no verdict, saying why.
        """
        found: dict[tuple[str, str, str], Comparison | str] = {}
        for comparison in self.comparisons:
            key = (comparison.candidate, comparison.benchmark, comparison.scorer)
            if differences := self.differences(comparison):
                texts = listed(mismatch.text for mismatch in differences)
                found[key] = f"protocols or data differ ({texts}): no verdict"
            elif key in found:
                found[key] = f"{self.baseline} has several models, none of them {key[0]}"
            else:
                found[key] = comparison
        return found

    def as_json(self) -> dict[str, Any]:
        """The content of ``comparison.json``; ``comparable`` false: the numbers are no verdict."""
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
        """The comparison of ``as_json``.

        Raises RunError for a document that lacks a field, such as that of another version.
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
    mismatches = mismatches_of(pairs)
    if mismatches and not allow_mismatch:
        raise refusal(names[0], names[1], mismatches)
    mismatches += [unlike for one, other in pairs if (unlike := _unmeasured(one, other))]
    return RunComparison(
        *names,
        comparisons=tuple(compare_pair(one, other) for one, other in pairs),
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
    mismatches = mismatches_of(pairs)
    if mismatches and not allow_mismatch:
        raise refusal(f"baseline {name}", "this run", mismatches)


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


def _unmeasured(baseline: Measurement, candidate: Measurement) -> Mismatch | None:
    """Why a side that is not a measurement gives no verdict; the other results still do."""
    if baseline.result.is_measurement and candidate.result.is_measurement:
        return None
    one, other = (f"{s.result.counts.all_tied_rate or 0:.1%}" for s in (baseline, candidate))
    models = (baseline.result.model, candidate.result.model)
    return Mismatch(baseline.name, "share of answers whose options all tie", one, other, models)


# Comparing -------------------------------------------------------------------------------


def compare_pair(baseline: Measurement, candidate: Measurement) -> Comparison:
    """Two measurements, item by item. MismatchError where an item changed its subject."""
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
            sampled=baseline.result.sampled or candidate.result.sampled,
        )
    except ValueError as error:  # an item that changed its subject: other data was allowed
        raise MismatchError(f"{baseline.name} cannot be compared: {error}") from None
