"""The prompts of a run, kept beside its records for those who want to read them there.

``prompts.json.gz`` is one JSON document, because thousands of items share a handful of shots. It
depends on the plan alone, so the sessions of a resumed run write the same. Records know a prompt by
its SHA-256, so a prompt that is not the one that was sent is found out and never shown.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import Item
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import RunError

FILE = "prompts.json.gz"

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A prompt with all of its shots, and the choices whose likelihoods were asked for (if any).

    ``options``: the item's, which scorers go by, where they are not the choices.
    """

    prompt: Prompt
    choices: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[str, ...]:
        """The texts that a scorer compares."""
        return self.options or self.choices


class PromptedItems(NamedTuple):
    """Items of a benchmark under a protocol.

    ``pool``: few-shot examples by subject. ``fingerprints``: under which records know the protocol.
    """

    benchmark: str
    protocol: Protocol
    pool: Mapping[str, Sequence[Item]]
    fingerprints: Sequence[str]
    items: Iterable[Item]


def write_prompts(folder: Path, prompted: Iterable[PromptedItems]) -> None:
    """Write the prompts of items into a run folder, in one step.

    An item whose template fails is left out: it has no prompt. Raises RunError where the file
    cannot be written.
    """
    shots: dict[tuple[str, str], int] = {}
    _write(
        folder,
        ((one.benchmark, one.fingerprints, _rendered(one, shots)) for one in prompted),
        shots,
    )


def merge_prompts(shards: Iterable[Path], folder: Path) -> None:
    """Write the prompts of all shards of a run into its folder, where they have any.

    Raises RunError, in one line, for a file that is damaged, and where none can be written.
    """
    shots: dict[tuple[str, str], int] = {}
    joined: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for shard in shards:
        for (benchmark, fingerprint, item), stored in read_prompts(shard).items():
            joined.setdefault((benchmark, fingerprint), {})[item] = _entry(stored, shots)
    if joined:
        results = (
            (benchmark, [fingerprint], items.items())
            for (benchmark, fingerprint), items in joined.items()
        )
        _write(folder, results, shots)


Entries = Iterable[tuple[str, list[Any]]]
"""Ids of items, and their prompts as lists of JSON values."""


def _write(
    folder: Path,
    results: Iterable[tuple[str, Sequence[str], Entries]],
    shots: Iterable[tuple[str, str]],
) -> None:
    """Write the document item by item: 100,000 prompts would fill 300 MB at once.

    ``shots`` is complete when all ``results`` have been taken.
    """
    temporary = folder / f".{FILE}.tmp"
    try:
        # No time stamp: the same run leaves the same bytes. MMLU's 14,042 prompts take 2.6 MB in
        # 0.06 s; level 6 would save 0.4 MB and take 0.3 s.
        with (
            temporary.open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,
            io.BufferedWriter(packed, 1 << 20) as out,
        ):
            for part in _document(results, shots):
                out.write(part.encode("ascii"))
        os.replace(temporary, folder / FILE)
    except OSError as error:
        raise RunError(f"cannot write {folder / FILE}: {error.strerror or error}") from error


def _document(
    results: Iterable[tuple[str, Sequence[str], Entries]], shots: Iterable[tuple[str, str]]
) -> Iterator[str]:
    """The JSON document in parts."""
    yield f'{{"format":{_FORMAT},"results":['
    for number, (benchmark, fingerprints, items) in enumerate(results):
        yield f'{"," if number else ""}{{"benchmark":{json.dumps(benchmark)},"protocols":'
        yield f'{json.dumps(list(fingerprints))},"items":{{'
        for place, (item, entry) in enumerate(items):
            yield f"{',' if place else ''}{json.dumps(item)}:{json.dumps(entry)}"
        yield "}}"
    yield f'],"shots":{json.dumps(list(shots))}}}'


def read_prompts(folder: Path) -> Mapping[tuple[str, str, str], StoredPrompt]:
    """(benchmark, protocol's fingerprint, item) → its prompt; empty where none are stored.

    Raises RunError, in one line, for a file that is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        return {}
    try:
        document = json.loads(gzip.decompress(file.read_bytes()))
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']!r}, this version reads {_FORMAT}")
        shots = [(question, answer) for question, answer in document["shots"]]
        return {
            (result["benchmark"], fingerprint, item): stored
            for result in document["results"]
            for item, entry in result["items"].items()
            for stored in (_stored(entry, shots),)
            for fingerprint in result["protocols"]
        }
    except (OSError, EOFError, ValueError, TypeError, KeyError, IndexError) as error:
        raise RunError(f"{file}: damaged prompts ({error})") from None


def _rendered(one: PromptedItems, shots: dict[tuple[str, str], int]) -> Entries:
    for item in one.items:
        try:
            prompt = one.protocol.render(item, one.pool.get(item.subject, ()))
            choices = one.protocol.template.choices(item) if one.protocol.ask == "choices" else ()
        except Exception:  # told where the item is asked, as the item's own error
            continue
        # Only this scorer goes by the texts of the options; letters are stored without them.
        differ = one.protocol.scorer == "cloze" and choices != item.options
        options = item.options if differ else ()
        yield item.id, _entry(StoredPrompt(prompt, choices, options), shots)


def _entry(stored: StoredPrompt, shots: dict[tuple[str, str], int]) -> list[Any]:
    prompt = stored.prompt
    return [
        prompt.description,
        [shots.setdefault(shot, len(shots)) for shot in prompt.shots],
        prompt.question,
        prompt.delimiter,
        prompt.separator,
        prompt.prefix,
        prompt.shots_as_text,
        list(stored.choices),
        *([list(stored.options)] if stored.options else []),
    ]


def _stored(entry: Sequence[Any], shots: Sequence[tuple[str, str]]) -> StoredPrompt:
    description, numbers, question, delimiter, separator, prefix, as_text, choices, *more = entry
    prompt = Prompt(
        description=description,
        shots=tuple(shots[number] for number in numbers),
        question=question,
        delimiter=delimiter,
        separator=separator,
        prefix=prefix,
        shots_as_text=as_text,
    )
    return StoredPrompt(prompt, tuple(choices), *map(tuple, more))
