"""``replay:FILE[?key=field&…]``: recorded answers as a model.

FILE is ``.jsonl``, ``.json`` (a list of objects), either of them gzipped (``.gz``), or a ``.zip``
that contains one such file. ``records.jsonl`` of a run is such a file.

A record identifies its item by ``item`` or ``id``, or by ``subject`` and ``row``. The answer is in
``prediction``, ``text`` or ``response``, or in ``logprobs``. Several samples of an item are records
with different ``sample``, or a list in one record (``samples``, or a list instead of a text), whose
first element is sample 0. Predictions of SWE-bench (``instance_id`` and ``model_patch``) are such
records, also as one JSON object by id: the last for an instance counts, and null is an empty patch.
If a record has ``prompt_sha256``, its answer is used for that prompt
only. Requests with another order of the options are answered only by the records of a run, which
name the arm.

For other files, a mapping gives the field of each part of a record (``field_mapping.KEYS``):
``replay:FILE?text=FIELD&item=FIELD``. ``answer.text`` is a nested field. An item id can be composed
of fields: ``item={category}-{question_id:04d}``, where ``{#}`` is the index of the record in the
file, from 0. The result is converted to an id by ``sources.safe_id``, as in the benchmarks:
"HumanEval/0" becomes ``HumanEval_0``.

The index in memory holds the position of each answer in the file, not the answer, so that memory
does not depend on the length of the answers. Only a JSON list is read as a whole, once, and written
to a temporary file as lines.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import weakref
import zipfile
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO
from typing import Any

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.replay.answer_index import AnswerIndex
from pytest_llmeval.models.replay.answer_index import AnswerLocation
from pytest_llmeval.models.replay.field_mapping import TEXT_FIELDS
from pytest_llmeval.models.replay.field_mapping import Fields
from pytest_llmeval.models.replay.field_mapping import prompt_hash
from pytest_llmeval.models.replay.field_mapping import read_mapping
from pytest_llmeval.models.replay.record_files import is_lines
from pytest_llmeval.models.replay.record_files import rows
from pytest_llmeval.models.replay.record_files import stem
from pytest_llmeval.models.replay.record_files import unpack
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.sources.files import READ_ERRORS
from pytest_llmeval.sources.files import nearest_sibling
from pytest_llmeval.sources.files import open_binary
from pytest_llmeval.sources.files import parse_object
from pytest_llmeval.sources.files import read_error
from pytest_llmeval.sources.item_ids import safe_id

# Number of records to read for the kinds of answers in a file.
_PEEK = 1000
_DAMAGED = (*READ_ERRORS, zipfile.BadZipFile, NotImplementedError, RuntimeError)


def open_model(rest: str) -> Replay:
    """Return the model of the spec ``replay:<rest>``, with ``rest`` as ``FILE[?key=field&…]``.

    Raises ConfigError if the file does not exist, if the mapping is invalid, and if the first
    records contain no answers; DataError if the file cannot be read.
    """
    spec = f"replay:{rest}"
    target, _, query = rest.partition("?")
    path = Path(target).expanduser()
    if not target:
        raise ConfigError(f"model spec {spec!r} names no file: replay:FILE.jsonl")
    # os.path returns False for names that the file system rejects; Path raises OSError.
    if os.path.isdir(path):
        raise ConfigError(f"model spec {spec!r}: a folder; a file of answers was expected")
    if not os.path.isfile(path):
        raise ConfigError(f"model spec {spec!r}: no such file{nearest_sibling(path)}")
    return Replay(path, read_mapping(spec, query))


class Replay(Model):
    """Model that returns recorded answers; the first ``answer`` indexes the file."""

    def __init__(self, path: Path, mapping: Mapping[str, str]) -> None:
        self._path = path
        self._mapping = mapping
        self._fields = Fields(mapping)
        self.name = mapping.get("name") or safe_id(stem(path), 60)
        #: Protocol fingerprints of the records with the original order of the options.
        self._protocols: set[str] = set()
        #: Instances of predictions, in the order of the file; and those that have several.
        self._instances: dict[str, None] = {}
        self._repeated: dict[str, None] = {}
        self.asks = self._peek()

    @cached_property
    def fingerprint(self) -> str:
        """First 16 hex digits of the SHA-256 of file and mapping."""
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        fields = {key: value for key, value in self._mapping.items() if key != "name"}
        if fields:
            digest.update(json.dumps(fields, sort_keys=True).encode())
        return digest.hexdigest()[:16]

    @property
    def recorded_items(self) -> Collection[str]:
        """Instances that the file has predictions for, once it has been read."""
        return self._instances.keys()

    @property
    def warnings(self) -> Sequence[str]:
        """A line on instances with several predictions."""
        if not self._repeated:
            return ()
        return (
            f"{self._path.name}: several predictions for {abbreviate(list(self._repeated), 3)}: the last"
            " counts",
        )

    def answer(self, requests: Iterable[Request]) -> list[Response]:
        """Return the recorded answer to every request, in the order of the requests.

        A request without recorded answer gets a response with ``error``. Raises DataError with file
        and line for an invalid record.
        """
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Response:
        places = self._places(request)
        if not places:
            which = f", sample {request.sample}" if request.sample else ""
            which += f", {request.arm}" if request.arm else ""
            return _failed(request, f"no recorded answer for {request.id}{which}")
        place = _matching(places, request)
        if place is None:
            return _failed(
                request,
                f"recorded for another prompt: the answer for {request.id} in {self._path.name}"
                " belongs to a prompt with another hash",
            )
        self._lines.seek(place.offset)
        row = parse_object(self._path, place.number, self._lines.readline())
        return self._response(request, row, place)

    def _places(self, request: Request) -> list[AnswerLocation]:
        """Return the answers recorded for the request's item, sample and arm, for any prompt."""
        recorded = self._index.places(request.id)  # first: the index has the protocols
        arms = {request.arm}
        if request.arm:
            arms.update(arm_fingerprint(protocol, request.arm) for protocol in self._protocols)
        return [place for place in recorded if place.sample == request.sample and place.arm in arms]

    def _response(self, request: Request, row: dict[str, Any], place: AnswerLocation) -> Response:
        where = f"{self._path}, line {place.number}"
        if row.get("error"):
            return _failed(request, str(row["error"]))
        if request.ask == "choices":
            try:
                values = tuple(
                    math.nan if value is None else float(value)
                    for value in self._fields.value(row, "logprobs") or ()
                )
            except (TypeError, ValueError):
                return _failed(request, f"{where}: logprobs is not a list of numbers")
            if not values:
                return _failed(request, f"{where}: no log-probabilities were recorded")
            return Response(request.id, logprobs=values, sample=request.sample, arm=request.arm)
        texts = self._fields.texts(row)
        text = texts[place.element] if texts else None
        if text is None:
            return _failed(request, f"{where}: no text was recorded")
        finish, tokens = self._fields.value(row, "finish_reason"), row.get("completion_tokens")
        return Response(
            request.id,
            text=text,
            sample=request.sample,
            arm=request.arm,
            finish_reason=finish if isinstance(finish, str) else None,
            completion_tokens=tokens if isinstance(tokens, int) else None,
        )

    def _peek(self) -> frozenset[Ask]:
        asks: set[Ask] = set()
        empty, failed = True, False
        try:
            # A packed list is converted to lines here, once.
            lines = is_lines(self._path)
            with open_binary(self._path) if lines else nullcontext(self._lines) as file:
                for _, _, row in islice(rows(self._path, file), _PEEK):
                    empty = False
                    if any(text is not None for text in self._fields.texts(row)):
                        asks.add("text")
                    if self._fields.value(row, "logprobs"):
                        asks.add("choices")
                    if len(asks) == 2:
                        break
                    failed = failed or bool(row.get("error"))
                    last = row
        except _DAMAGED as error:
            raise read_error(self._path, error) from None
        if empty:
            raise DataError(f"{self._path}: no recorded answers")
        for key in ("text", "logprobs"):
            if not asks and key in self._mapping:
                raise ConfigError(
                    f"{self._path}: no record holds {key} in field {self._mapping[key]!r}"
                    f"{suggestion(self._mapping[key], last)}"
                )
        if not asks and not failed:
            raise ConfigError(
                f"{self._path}: no record holds an answer in field {', '.join(TEXT_FIELDS)} or"
                f" logprobs; name the field that does (replay:{self._path.name}?text=FIELD); known:"
                f" {', '.join(sorted(last))[:200]}"
            )
        # All records so far are errors, which answer both kinds of request.
        return frozenset(asks or ("choices", "text"))

    @cached_property
    def _lines(self) -> IO[bytes]:
        """The records as lines of a seekable file.

        Packed files are unpacked into a temporary file, and a JSON list is written there as lines.
        """
        file: IO[bytes]
        if is_lines(self._path) and self._path.suffix != ".gz":
            file = self._path.open("rb")
        else:
            file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the model
            unpack(self._path, file)
            file.seek(0)
        weakref.finalize(self, file.close)
        return file

    @cached_property
    def _index(self) -> AnswerIndex:
        """The places of each item's answers."""
        index = AnswerIndex()
        try:
            self._lines.seek(0)
            for position, (number, offset, row) in enumerate(rows(self._path, self._lines)):
                if row.get("response_of"):
                    continue  # record of another scorer: the first scorer's has the response
                where = f"{self._path}, line {number}"
                item = self._fields.item_id(row, position, where)
                prompt = prompt_hash(self._fields.value(row, "prompt_sha256"), where)
                sample = self._fields.value(row, "sample")
                if not isinstance(sample, int | None):
                    raise DataError(f"{where}: sample is not a whole number")
                arm, protocol = _arm(row), row.get("protocol")
                if not arm and isinstance(protocol, str):
                    self._protocols.add(protocol)
                if arm:
                    sample = 0
                if "instance_id" in row:
                    if item in self._instances and not sample:
                        self._repeated[item] = None
                    self._instances[item] = None
                for element in range(max(1, len(self._fields.texts(row)))):
                    sampled = (sample or 0) + element
                    index.put(item, AnswerLocation(arm, sampled, prompt, offset, number, element))
        except _DAMAGED as error:
            raise read_error(self._path, error) from None
        return index


def _arm(row: Mapping[str, Any]) -> str:
    """Return the arm of a run's record, as in ``AnswerLocation``; only these have all three fields."""
    order, protocol, arm = row.get("order"), row.get("protocol"), row.get("arm")
    if not order or not isinstance(protocol, str):
        return ""
    return arm if isinstance(arm, str) else protocol


def _matching(places: Sequence[AnswerLocation], request: Request) -> AnswerLocation | None:
    """Return the answer recorded for the request's prompt, else one recorded without a hash."""
    # Most files have one answer per item and no hash: avoid hashing prompts for those.
    if places[0].prompt is None and len(places) == 1:
        return places[0]
    digest = bytes.fromhex(request.prompt.sha256)
    by_hash = {place.prompt: place for place in places}
    return by_hash.get(digest) or by_hash.get(None)


def _failed(request: Request, error: str) -> Response:
    return Response(request.id, error=error, sample=request.sample, arm=request.arm)
