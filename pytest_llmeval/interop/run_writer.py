"""Write a log as a run folder, which all commands for stored runs then read as any other."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.log import LoggedBenchmark
from pytest_llmeval.interop.names import short_hash
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import now
from pytest_llmeval.storage.records import RecordWriter

_BATCH = 1_000  # records of one write
_BLOCK = 1 << 20  # bytes


def write_run(log: Log, out: Path, source: str, command: Sequence[str] = ()) -> RunFolder:
    """Write ``run.json`` and ``records.jsonl`` into the new folder ``out``.

    ``source``: the log, as the user named it. The folder appears when it is complete. Raises
    ConfigError if ``out`` exists, RunError if it cannot be written.
    """
    if out.exists():
        raise ConfigError(f"{out} exists already")
    results: list[PlannedResult] = []
    for benchmark in log.benchmarks:
        results += list(_planned(log, benchmark, len(results)))
    hidden = RunFolder(out.parent / f".{out.name}.tmp")
    try:
        shutil.rmtree(hidden.path, ignore_errors=True)
        hidden.path.mkdir(parents=True)
        writer = RecordWriter(hidden.records)
        written = 0
        for batch in _batches(_records(log, results)):
            writer.append(*batch)
            written += len(batch)
        writer.close()
        hidden.write("run.json", _manifest(log, results, source, written, command))
        hidden.path.rename(out)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(hidden.path, ignore_errors=True)
    return RunFolder(out)


def _planned(log: Log, benchmark: LoggedBenchmark, first: int) -> Iterator[PlannedResult]:
    """Yield the results of a benchmark; those after the first score the responses of the first.

    ``first``: index of the first one in the run.
    """
    for number, (scorer, options) in enumerate(benchmark.scorers.items()):
        content = {
            "harness": log.harness,
            "harness_version": log.version,
            "scorer": scorer,
            "scorer_options": options,
            "samples": benchmark.samples,
            **benchmark.protocol,
        }
        yield PlannedResult(
            benchmark=benchmark.name,
            version=benchmark.version,
            data_hash=benchmark.data_hash,
            chance=benchmark.chance,
            subjects=benchmark.sizes,
            drawn=None,
            variants=(ProtocolVariant(short_hash(content), {"name": log.harness, **content}),),
            shots={},
            requested=benchmark.items,
            responses_of=first if number else None,
        )


def _records(log: Log, results: Iterable[PlannedResult]) -> Iterator[Record]:
    planned = {(result.benchmark, result.scorer): result for result in results}
    for benchmark in log.benchmarks:
        first = next(iter(benchmark.scorers))
        for answer in benchmark.answers:
            for scorer in benchmark.scorers:
                result = planned[benchmark.name, scorer]
                yield _record(log, result, answer, "" if scorer == first else first)


def _record(log: Log, result: PlannedResult, answer: LoggedAnswer, response_of: str) -> Record:
    """Return the record of an answer under a scorer; only the first scorer's has the response."""
    score = answer.scores[result.scorer]
    response: dict[str, Any] = {}
    if not response_of:
        response = {
            "text": answer.text,
            "reasoning": answer.reasoning,
            "logprobs": answer.logprobs,
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "prompt_sha256": answer.prompt_sha256,
            "seconds": answer.seconds,
        }
    return Record(
        model=log.model,
        benchmark=result.benchmark,
        scorer=result.scorer,
        item=answer.item,
        subject=answer.subject,
        outcome=score.outcome,
        answer=score.answer,
        gold=answer.gold,
        sample=answer.sample,
        finish_reason=answer.finish_reason,
        error=score.error,
        protocol=result.variants[0].fingerprint,
        data=result.data_hash,
        model_fingerprint=log.model_fingerprint,
        response_of=response_of,
        all_tied=len(answer.logprobs) > 1 and len(set(answer.logprobs)) == 1,
        **response,
    )


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _manifest(
    log: Log, results: Sequence[PlannedResult], source: str, answers: int, command: Sequence[str]
) -> dict[str, Any]:
    return {
        "status": "finished",
        "started": log.started or now(),
        "seed": 0,
        "shard": None,
        "limit": None,
        "models": [log.model],
        "own_model": False,
        "results": [result.as_json() for result in results],
        "selected": sum(result.requested for result in results if result.responses_of is None),
        "answers": answers,
        "command": list(command),
        "versions": {log.harness: log.version} if log.version else {},
        "model_fingerprints": {log.model: log.model_fingerprint} if log.model_fingerprint else {},
        "imported": {
            "from": source,
            "harness": log.title,
            "sha256": _hash_of(log.files),
            "at": now(),
        },
        "notes": list(log.notes),
    }


def _hash_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
