"""The prompts of a run, stored next to its records in ``prompts.json.gz``.

The file is one JSON document, because thousands of items share a few shots. It depends on the plan
alone, so every session of a resumed run writes the same file. Records hold the SHA-256 of their
prompt, so a stored prompt that was not the one sent is detected and never shown.
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
    """A prompt with all of its shots, and the choices whose likelihoods were requested."""

    prompt: Prompt
    #: Empty if text was generated.
    choices: tuple[str, ...]
    #: Texts of the item's options, if scorers compare these instead of ``choices``.
    options: tuple[str, ...] = ()

    @property
    def compared_texts(self) -> tuple[str, ...]:
        """Texts that the scorer compares."""
        return self.options or self.choices


class PromptedItems(NamedTuple):
    """Items of a benchmark under a protocol."""

    benchmark: str
    protocol: Protocol
    #: Subject → few-shot examples.
    pool: Mapping[str, Sequence[Item]]
    #: Fingerprints of the protocol in records.
    fingerprints: Sequence[str]
    items: Iterable[Item]


def write_prompts(folder: Path, prompted: Iterable[PromptedItems]) -> None:
    """Write the prompts of items into a run folder, atomically.

    Items whose template fails are left out: they have no prompt. Raises RunError if the file cannot
    be written.
    """
    shots: dict[tuple[str, str], int] = {}
    _write(
        folder,
        (
            (group.benchmark, group.fingerprints, _render_entries(group, shots))
            for group in prompted
        ),
        shots,
    )


def merge_prompts(shards: Iterable[Path], folder: Path) -> None:
    """Write the stored prompts of all shards of a run into its folder.

    Raises RunError, in one line, for a damaged file or if the file cannot be written.
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
"""(item id, its prompt as a list of JSON values)."""


def _write(
    folder: Path,
    results: Iterable[tuple[str, Sequence[str], Entries]],
    shots: Iterable[tuple[str, str]],
) -> None:
    """Write the document item by item: 100,000 prompts would take 300 MB of memory.

    ``shots`` is filled while ``results`` are iterated.
    """
    temporary = folder / f".{FILE}.tmp"
    try:
        # No time stamp: the same run writes the same bytes. MMLU's 14,042 prompts take 2.6 MB in
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
    """Yield the JSON document in parts."""
    yield f'{{"format":{_FORMAT},"results":['
    for number, (benchmark, fingerprints, items) in enumerate(results):
        yield f'{"," if number else ""}{{"benchmark":{json.dumps(benchmark)},"protocols":'
        yield f'{json.dumps(list(fingerprints))},"items":{{'
        for place, (item, entry) in enumerate(items):
            yield f"{',' if place else ''}{json.dumps(item)}:{json.dumps(entry)}"
        yield "}}"
    yield f'],"shots":{json.dumps(list(shots))}}}'


def read_prompts(folder: Path) -> Mapping[tuple[str, str, str], StoredPrompt]:
    """Return the stored prompts by (benchmark, protocol fingerprint, item id).

    Empty if none are stored. Raises RunError, in one line, for a damaged file.
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


def _render_entries(group: PromptedItems, shots: dict[tuple[str, str], int]) -> Entries:
    for item in group.items:
        try:
            prompt = group.protocol.render(item, group.pool.get(item.subject, ()))
            is_choice = group.protocol.ask == "choices"
            choices = group.protocol.template.choices(item) if is_choice else ()
        except Exception:  # reported as the item's error when its request is made
            continue
        # Only this scorer compares the texts of the options.
        differ = group.protocol.scorer == "cloze" and choices != item.options
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
