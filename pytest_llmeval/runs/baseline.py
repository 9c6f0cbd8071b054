"""Named baselines: a run as one small JSON file for git, with outcomes and fingerprints only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.schema import check_document

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Valid names of baselines: the stem of the file."""

BASELINES = Path("baselines")
"""Default folder in which baselines are saved and searched by name."""

_KIND = "baseline"
_ANSWERS = ("kind", "outcomes", "orders")
_ORDER_UNITS = 1_000_000
_LETTERS = {
    Outcome.CORRECT: "c",
    Outcome.WRONG: "w",
    Outcome.UNPARSED: "u",
    Outcome.ERROR: "e",
}
_REFUSED = "r"  # unparsed, because the reply was refused or filtered
_OUTCOMES = {
    **{letter: outcome for outcome, letter in _LETTERS.items()},
    _REFUSED: Outcome.UNPARSED,
}
_NOT_RUN = "-"  # a sample without an outcome between others
# Fields of an item, stored as lists of ids if there are any.
_FLAGS = ("tie", "all_tied", "dropped_shots", "encoded_apart")
# Optional fields of run.json that are copied: those that results are built from, and provenance.
_MANIFEST_FIELDS = (
    "started",
    "models",
    "own_model",
    "results",
    "seed",
    "limit",
    "asked",
    "additions",
    "template_dates",
    "samples",
    "model_fingerprints",
    "imported",
)


class _Group(NamedTuple):
    """Fields that all records of a block of the file share."""

    model: str
    benchmark: str
    scorer: str
    protocol: str
    data: str
    model_fingerprint: str | None


def save_baseline(run: Run, file: Path) -> None:
    """Write the outcomes of a run to ``file`` atomically; the same run gives the same bytes.

    Items that do not count (their test had no verdict) are left out, and so are answers in other
    option orders: audits are not compared. The likelihoods of order tests are kept, because gates of
    contamination compare with them. Raises RunError for a run that stopped early or has no
    outcomes, or if the file cannot be written.
    """
    for measurement in run.measurements():
        if measurement.result.stopped:
            counts = measurement.result.counts
            raise RunError(
                f"{run.path} stopped at {counts.attempted:,} of {counts.total:,} answers of"
                f" {measurement.name}: complete it first, with --llm-resume and without"
                " --llm-sequential"
            )
    groups: dict[_Group, dict[str, dict[str, dict[int, Record]]]] = {}
    for _, records in run.answers():
        for record in records:
            subjects = groups.setdefault(_group(record), {})
            items = subjects.setdefault(record.subject, {})
            items.setdefault(record.item, {})[record.sample] = record
    if not groups:
        raise RunError(f"{run.path} has no outcomes to save")
    manifest = {key: run.manifest[key] for key in _MANIFEST_FIELDS if key in run.manifest}
    document = {
        "kind": _KIND,
        "run": run.manifest.get("run") or run.path.name,
        **manifest,
        "outcomes": [
            {
                **group._asdict(),
                "subjects": {name: _pack(groups[group][name]) for name in sorted(groups[group])},
            }
            for group in sorted(groups, key=lambda group: tuple(value or "" for value in group))
        ],
        **({"orders": orders} if (orders := _pack_orders(run)) else {}),
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from None
    RunFolder(file.parent).write(file.name, document)


def _pack_orders(run: Run) -> list[dict[str, Any]]:
    """Return the likelihoods of order tests by test: of every group, in millionths, the precision of float32."""
    tests: dict[tuple[_Group, str], dict[str, str]] = {}
    for record in run.records:
        if record.order_test and not record.left_out and record.outcome is not Outcome.ERROR:
            values = " ".join(str(round(value * _ORDER_UNITS)) for value in record.logprobs)
            tests.setdefault((_group(record), record.arm), {})[record.item] = values
    return [
        {**group._asdict(), "arm": arm, "groups": dict(sorted(values.items()))}
        for (group, arm), values in sorted(
            tests.items(), key=lambda test: (tuple(value or "" for value in test[0][0]), test[0][1])
        )
    ]


def _unpack_orders(test: dict[str, Any]) -> Iterator[Record]:
    group = _Group(*(test[name] for name in _Group._fields))
    for item, text in test["groups"].items():
        values = tuple(int(value) / _ORDER_UNITS for value in text.split())
        yield Record(
            **group._asdict(),
            item=item,
            subject="",
            outcome=Outcome.UNPARSED,
            answer=None,
            gold="",
            arm=test["arm"],
            logprobs=values,
            all_tied=len(set(values)) == 1,
        )


def load_baseline(text: str, folder: Path) -> Run:
    """Load the run that ``text`` names: a run folder, a baseline file, or ``folder/<text>.json``.

    Raises ConfigError, suggesting the nearest name, if there is none; RunError, in one line, for a
    file that is damaged or not a baseline.
    """
    path, named = Path(text), folder / f"{text.removesuffix('.json')}.json"
    try:
        if (path / "run.json").is_file():
            return load_run(path)
        if path.is_file():
            return read_baseline(path)
        if NAME.fullmatch(text) and named.is_file():
            return read_baseline(named)
        if path.is_dir():
            return load_run(path)  # raises an error for the missing file
    except OSError as error:
        raise RunError(f"{text[:100]!r} cannot be read: {error.strerror or error}") from None
    raise ConfigError(
        f"no run folder, baseline file or baseline in {folder} is called {text!r}"
        f"{suggestion(text, _candidates(path, folder))}"
    )


def read_baseline(file: Path) -> Run:
    """Read a baseline file as a run, whose records have only outcomes and fingerprints.

    Raises RunError, in one line, for a file that is damaged or not a baseline.
    """
    document = RunFolder(file.parent).read(file.name)
    if document.get("kind") != _KIND:
        raise RunError(f"{file}: not a baseline of this tool")
    manifest = {key: value for key, value in document.items() if key not in _ANSWERS}
    try:
        check_document("run.json", manifest, file)
        records = tuple(record for block in document["outcomes"] for record in _unpack_block(block))
        records += tuple(
            record for test in document.get("orders", ()) for record in _unpack_orders(test)
        )
        run = Run(file, manifest, records)
        run.measurements()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else error
        raise RunError(f"{file}: damaged baseline ({reason})") from None
    return run


def _group(record: Record) -> _Group:
    return _Group(*(getattr(record, name) for name in _Group._fields))


def _pack(items: dict[str, dict[int, Record]]) -> dict[str, Any]:
    """Return the items of a subject by the outcomes of their samples, without their common prefix.

    There is one letter per sample, a capital if the answer was truncated at the token limit.
    """
    # The common prefix of the first and last id in order is common to all. At least one character
    # of every id remains, so that ids can be separated by spaces.
    first, last = min(items), max(items)
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    prefix = first[: min(sum(1 for _ in shared), *(len(item) - 1 for item in items))]
    packed: dict[str, list[str]] = {}
    for item in sorted(items):
        samples = items[item]
        letters = (
            _letter(samples[number]) if number in samples else _NOT_RUN
            for number in range(max(samples) + 1)
        )
        packed.setdefault("".join(letters), []).append(item[len(prefix) :])
    flags = {
        flag: " ".join(
            item[len(prefix) :] for item in sorted(items) if getattr(items[item].get(0), flag, 0)
        )
        for flag in _FLAGS
    }
    return {
        "prefix": prefix,
        "items": {key: " ".join(packed[key]) for key in sorted(packed)},
        **{flag: ids for flag, ids in flags.items() if ids},
    }


def _letter(record: Record) -> str:
    letter = _REFUSED if record.refused else _LETTERS[record.outcome]
    return letter.upper() if record.truncated else letter


def _unpack_block(block: dict[str, Any]) -> Iterator[Record]:
    group = _Group(*(block[name] for name in _Group._fields))
    if not all(isinstance(value, str) for value in group[:-1]):
        raise TypeError("names and fingerprints must be strings")
    for subject, packed in block["subjects"].items():
        seen: set[str] = set()
        flags = {flag: set(packed.get(flag, "").split()) for flag in _FLAGS}
        for letters, rests in packed["items"].items():
            for rest in rests.split():
                item = packed["prefix"] + rest
                if item in seen:
                    raise ValueError(f"item {item} occurs twice")
                seen.add(item)
                own = {flag: rest in ids for flag, ids in flags.items()}
                yield from _unpack_item(group, subject, item, letters, **own)


def _unpack_item(
    group: _Group,
    subject: str,
    item: str,
    letters: str,
    tie: bool,
    all_tied: bool,
    dropped_shots: bool,
    encoded_apart: bool,
) -> Iterator[Record]:
    for sample, letter in enumerate(letters):
        if letter == _NOT_RUN:
            continue
        if letter.lower() not in _OUTCOMES:
            raise ValueError(f"{letter!r} is not an outcome")
        yield Record(
            **group._asdict(),
            item=item,
            subject=subject,
            outcome=_OUTCOMES[letter.lower()],
            answer=None,
            gold="",
            sample=sample,
            finish_reason=_finish_reason(letter),
            tie=tie,
            all_tied=all_tied,
            dropped_shots=int(dropped_shots),
            encoded_apart=int(encoded_apart),
        )


def _finish_reason(letter: str) -> str | None:
    return REFUSED if letter == _REFUSED else "length" if letter.isupper() else None


def _candidates(path: Path, folder: Path) -> list[str]:
    """Return candidates for suggestions: names of baselines, and runs and files next to a path."""
    names = [file.stem for file in folder.glob("*.json")]
    if path.parent != Path() and path.parent.is_dir():
        names += [str(path.parent / file.parent.name) for file in path.parent.glob("*/run.json")]
        names += [str(file) for file in path.parent.glob("*.json")]
    return names
