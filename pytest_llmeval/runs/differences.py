"""In what two results differ that belong together: fields of their protocols, their data."""

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
from pytest_llmeval.runs.measurement import Measurement

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
