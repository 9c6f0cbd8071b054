"""``replay:FILE``: recorded answers as a model. A jsonl file, plain or gzipped, one answer a line.

A line names its item by ``item`` or ``id``, or by ``subject`` and ``row``; it holds the answer as
``prediction``, ``text`` or ``response``, or as ``logprobs``. Several samples of an item are told
apart by ``sample``. ``records.jsonl`` of a run is such a file. Where a line carries
``prompt_sha256``, its answer is given to that prompt only.

What is kept in memory is where each answer stands in the file, not the answer: a file of 100,000
long answers costs no more than one of 100,000 letters.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
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
from pytest_llmeval.sources.local import READ_ERRORS
from pytest_llmeval.sources.local import nearest_sibling
from pytest_llmeval.sources.local import open_binary
from pytest_llmeval.sources.local import parse_object
from pytest_llmeval.sources.local import unreadable
from pytest_llmeval.sources.names import row_id
from pytest_llmeval.sources.names import safe_id

# Lines looked at to see what kind of answers a file holds.
_PEEK = 1000
_TEXT_FIELDS = ("prediction", "text", "response")

# The sample, the recorded prompt's hash (None: any prompt), the line's place in the file, and
# its number.
_Place = tuple[int, bytes | None, int, int]


def open_model(rest: str) -> Replay:
    """The model of the spec ``replay:<rest>``.

    Raises ConfigError where there is no such file or its first lines are not recorded answers.
    """
    path = Path(rest).expanduser()
    if not rest:
        raise ConfigError("model spec 'replay:' names no file: replay:FILE.jsonl")
    if path.is_dir():
        raise ConfigError(f"model spec 'replay:{rest}': a folder; a jsonl file was expected")
    if not path.is_file():
        raise ConfigError(f"model spec 'replay:{rest}': no such file{nearest_sibling(path)}")
    return Replay(path)


class Replay:
    """Recorded answers. The file is indexed by the first ``answer``, not before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
        self.name = safe_id(stem, 60)
        self.asks = self._peek()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (16 hex digits) of the file's bytes: other answers are another model."""
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]

    def answer(self, requests: Iterable[Request]) -> Iterator[Response]:
        """The recorded answer to every request, in the order of the requests.

        A request without one gets a response with ``error``. Raises DataError with file and
        line where the file is not what it should be.
        """
        for request in requests:
            yield self._answer(request)

    def _answer(self, request: Request) -> Response:
        places = [p for p in self._index.get(request.id, ()) if p[0] == request.sample]
        if not places:
            which = f", sample {request.sample}" if request.sample else ""
            return _failed(request, f"no recorded answer for {request.id}{which}")
        place = _matching(places, request)
        if place is None:
            return _failed(
                request,
                f"recorded for another prompt: the answer for {request.id} in {self._path.name}"
                " belongs to a prompt with another hash",
            )
        _, _, offset, number = place
        self._lines.seek(offset)
        row = parse_object(self._path, number, self._lines.readline())
        return _response(request, row, f"{self._path}, line {number}")

    def _peek(self) -> frozenset[Ask]:
        asks: set[Ask] = set()
        empty = True
        try:
            with open_binary(self._path) as file:
                for _, _, row in islice(_rows(self._path, file), _PEEK):
                    empty = False
                    asks |= _kinds(row)
                    if len(asks) == 2:
                        break
        except READ_ERRORS as error:
            raise unreadable(self._path, error) from None
        if empty:
            raise DataError(f"{self._path}: no recorded answers")
        # Nothing but errors so far: whatever is asked, the answer is that error.
        return frozenset(asks or ("choices", "text"))

    @cached_property
    def _lines(self) -> IO[bytes]:
        """The file, unpacked into a temporary one where it is gzipped: lines are read by place."""
        file: IO[bytes]
        if self._path.suffix == ".gz":
            file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the model
            with open_binary(self._path) as packed:
                shutil.copyfileobj(packed, file)
            file.seek(0)
        else:
            file = self._path.open("rb")
        weakref.finalize(self, file.close)
        return file

    @cached_property
    def _index(self) -> dict[str, tuple[_Place, ...]]:
        """Where each item's answers stand: the last line for a sample and prompt hash counts."""
        index: dict[str, tuple[_Place, ...]] = {}
        try:
            for number, offset, row in _rows(self._path, self._lines):
                if row.get("response_of"):
                    continue  # another scorer's record: the response is in its first scorer's
                item = _item_id(row, f"{self._path}, line {number}")
                prompt = _prompt_hash(row, f"{self._path}, line {number}")
                sample = row.get("sample", 0)
                if not isinstance(sample, int):
                    raise DataError(f"{self._path}, line {number}: sample is not a whole number")
                others = tuple(p for p in index.get(item, ()) if p[:2] != (sample, prompt))
                index[item] = (*others, (sample, prompt, offset, number))
        except READ_ERRORS as error:
            raise unreadable(self._path, error) from None
        return index


def _rows(path: Path, file: IO[bytes]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Number, place and object of every line. A torn last line is left out.

    A run that was killed leaves a last line without its end; any other line that is not an
    object is an error.
    """
    offset = 0
    for number, line in enumerate(file, start=1):
        if line.strip():
            try:
                yield number, offset, parse_object(path, number, line)
            except DataError:
                if line.endswith(b"\n"):
                    raise
                return
        offset += len(line)


def _item_id(row: dict[str, Any], where: str) -> str:
    for name in ("item", "id"):
        if isinstance(row.get(name), str | int):
            # As in the benchmark: "HumanEval/0" is the item HumanEval_0.
            return safe_id(str(row[name]))
    subject, position = row.get("subject"), row.get("row")
    if isinstance(subject, str) and isinstance(position, int):
        return row_id(subject, position)
    raise DataError(f"{where}: names no item (field item, id, or subject and row)")


def _prompt_hash(row: dict[str, Any], where: str) -> bytes | None:
    value = row.get("prompt_sha256")
    if not value:
        return None
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: prompt_sha256 is not a hash in hexadecimal") from None


def _matching(places: Sequence[_Place], request: Request) -> _Place | None:
    """The answer recorded for the request's prompt, else one recorded for no certain prompt."""
    # Most files have one answer an item, without a hash: no prompt is hashed for those.
    if places[0][1] is None and len(places) == 1:
        return places[0]
    asked = bytes.fromhex(request.prompt.sha256)
    by_hash = {place[1]: place for place in places}
    return by_hash.get(asked) or by_hash.get(None)


def _kinds(row: dict[str, Any]) -> set[Ask]:
    kinds: set[Ask] = set()
    if _text(row) is not None:
        kinds.add("text")
    if row.get("logprobs"):
        kinds.add("choices")
    return kinds


def _text(row: dict[str, Any]) -> str | None:
    for name in _TEXT_FIELDS:
        value = row.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    return None


def _response(request: Request, row: dict[str, Any], where: str) -> Response:
    if row.get("error"):
        return _failed(request, str(row["error"]))
    finish, tokens = row.get("finish_reason"), row.get("completion_tokens")
    if request.ask == "choices":
        try:
            values = tuple(
                math.nan if value is None else float(value) for value in row.get("logprobs") or ()
            )
        except (TypeError, ValueError):
            return _failed(request, f"{where}: logprobs is not a list of numbers")
        if not values:
            return _failed(request, f"{where}: no log-probabilities were recorded")
        return Response(request.id, logprobs=values, sample=request.sample)
    text = _text(row)
    if text is None:
        return _failed(request, f"{where}: no text was recorded")
    return Response(
        request.id,
        text=text,
        sample=request.sample,
        finish_reason=finish if isinstance(finish, str) else None,
        completion_tokens=tokens if isinstance(tokens, int) else None,
    )


def _failed(request: Request, error: str) -> Response:
    return Response(request.id, error=error, sample=request.sample)
