"""Export of a run for other programs: one JSON document, or a parquet table of its answers.

Both have the columns of ``COLUMNS`` for every answer. ``VERSION`` is incremented when a field is
removed or changes its meaning, but not for a new field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.run import Run

SCHEMA = "pytest-llmeval/run"
VERSION = 2

_BATCH = 10_000  # rows of one parquet batch


class Column(NamedTuple):
    """Field of every answer: name, Arrow type, and meaning."""

    name: str
    type: str
    meaning: str


COLUMNS = (
    Column("run", "string", "name of the run folder"),
    Column("started", "string", "when the run began, ISO 8601 with the zone"),
    Column("model", "string", "the model's spec or name"),
    Column("model_fingerprint", "string", "hash of its weights; null if unknown"),
    Column("benchmark", "string", "name of the benchmark"),
    Column("scorer", "string", "scorer that extracted and judged the answer"),
    Column("protocol", "string", "name of the protocol"),
    Column("protocol_fingerprint", "string", "hash of the whole protocol"),
    Column("data_hash", "string", "hash of the benchmark's data"),
    Column("subject", "string", "subject of the item"),
    Column("item", "string", "id of the item, unique in its benchmark"),
    Column("sample", "int64", "which of the item's answers in this arm, from 0"),
    Column(
        "arm",
        "string",
        "name of the order of a permutation audit (cyclic@1) or of the content-free input (free@N/A),"
        " for which alone the row counts; null: the original item",
    ),
    Column(
        "order",
        "string",
        "labels of the options in the order of the arm (DABC); null: the original order",
    ),
    Column("outcome", "string", "correct, wrong, unparsed or error"),
    Column("correct", "bool", "whether the outcome is correct; null for an error"),
    Column("answer", "string", "extracted answer; null if none could be extracted"),
    Column("gold", "string", "the right answer"),
    Column("text", "string", "the generated text"),
    Column("reasoning", "string", "reasoning before the answer"),
    Column("log", "string", "of code that was run, what explains the outcome; null: nothing"),
    Column("node", "string", "of code that was run on a cluster, the host name of the node"),
    Column(
        "logprobs", "list<double>", "natural log of each choice's probability; null: impossible"
    ),
    Column(
        "finish_reason",
        "string",
        "why the text ended: stop, length, content_filter, refusal, or a server's own",
    ),
    Column("truncated", "bool", "whether the answer was cut off at the token limit"),
    Column("prompt_tokens", "int64", "tokens of the prompt"),
    Column("completion_tokens", "int64", "tokens of the answer"),
    Column("prompt_sha256", "string", "SHA-256 of the prompt"),
    Column("dropped_shots", "int64", "shots left out to fit the prompt window"),
    Column("encoded_apart", "int64", "choices that were encoded separately from the prompt"),
    Column("tie", "bool", "whether the best choice was not unique"),
    Column("all_tied", "bool", "whether all choices had the same log-likelihood"),
    Column(
        "seconds",
        "double",
        "the answer's share of its batch's time, including embedding",
    ),
    Column("error", "string", "what went wrong, for an error"),
    Column("counted", "bool", "false if the test reached no verdict: the answer is not counted"),
    Column(
        "response_of", "string", "scorer whose row contains the response, if several scorers use it"
    ),
)

_KEPT = (
    *("status", "started", "finished", "seconds", "seed", "limit", "shard", "models"),
    *("model_fingerprints", "baseline", "usage", "prices"),
    *("command", "versions", "platform", "git"),
)


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for every answer of the run, with the keys of ``COLUMNS`` in their order."""
    names: dict[str, str] = {}
    for planned in run.planned:
        for variant in planned.variants:
            names[variant.fingerprint] = variant.name
            names.update(
                (arm_fingerprint(variant.fingerprint, arm), variant.name) for arm in planned.arms
            )
    for record in run.records:
        row = _row(record, run, names.get(record.protocol))
        # Python strings may contain lone surrogates, which JSON readers and Arrow reject.
        yield {
            name: replace_lone_surrogates(value) if type(value) is str else value
            for name, value in row.items()
        }


def _row(record: Record, run: Run, protocol: str | None) -> dict[str, Any]:
    correct = record.outcome is Outcome.CORRECT
    return {
        "run": run.path.name,
        "started": run.manifest.get("started"),
        "model": record.model,
        "model_fingerprint": record.model_fingerprint,
        "benchmark": record.benchmark,
        "scorer": record.scorer,
        "protocol": protocol,
        "protocol_fingerprint": record.protocol,
        "data_hash": record.data,
        "subject": record.subject,
        "item": record.item,
        "sample": record.sample,
        "arm": record.arm or None,
        "order": record.order or None,
        "outcome": str(record.outcome),
        "correct": None if record.outcome is Outcome.ERROR else correct,
        "answer": record.answer,
        "gold": record.gold,
        "text": record.text,
        "reasoning": record.reasoning,
        "log": record.log or None,
        "node": record.node or None,
        "logprobs": [None if value == -math.inf else value for value in record.logprobs] or None,
        "finish_reason": record.finish_reason,
        "truncated": record.truncated,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "prompt_sha256": record.prompt_sha256,
        "dropped_shots": record.dropped_shots,
        "encoded_apart": record.encoded_apart,
        "tie": record.tie,
        "all_tied": record.all_tied,
        "seconds": record.seconds,
        "error": record.error,
        "counted": not record.left_out,
        "response_of": record.response_of or None,
    }


def as_document(run: Run, judged: JudgedRun) -> dict[str, Any]:
    """Return the run as plain JSON values: manifest, results, gates, and every answer.

    ``results`` are those of ``metrics.json``, ``gates`` those of ``gates.json``; ``protocols``
    contains every protocol in full by its fingerprint.
    """
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "run": {"name": run.path.name, **{key: run.manifest.get(key) for key in _KEPT}},
        "verdict": judged.verdict,
        "items_failed": judged.items_failed,
        "thresholds": judged.thresholds,
        "protocols": {
            variant.fingerprint: variant.protocol
            for planned in run.planned
            for variant in planned.variants
        },
        "results": list(judged.results),
        "gates": [asdict(verdict) for verdict in judged.verdicts],
        "comparison": _without_format(judged.comparison),
        "answers": list(rows(run)),
    }


def _without_format(value: Any) -> Any:
    return value and {name: entry for name, entry in value.items() if name != "format"}


def write_json(file: Path, run: Run, judged: JudgedRun) -> None:
    """Write the JSON document in ASCII; raises OSError if the file cannot be written."""
    document = json.dumps(as_document(run, judged), allow_nan=False)
    file.write_text(f"{document}\n", encoding="ascii")


def write_parquet(file: Path, run: Run, judged: JudgedRun) -> None:
    """Write the answers as a parquet table, with the rest of the document in its metadata.

    The key ``llmeval`` of the schema's metadata is the JSON document without ``answers``. Raises
    OSError if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"string": pa.string(), "int64": pa.int64(), "bool": pa.bool_(), "double": pa.float64()}
    types["list<double>"] = pa.list_(pa.float64())
    document = as_document(Run(run.path, run.manifest, ()), judged)
    del document["answers"]
    schema = pa.schema(
        [(column.name, types[column.type]) for column in COLUMNS],
        metadata={"llmeval": json.dumps(document, allow_nan=False)},
    )
    answers = rows(run)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(answers, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
