"""Stored runs made by hand: models, protocols and outcomes as letters (c, w, u, e; one a sample)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Template
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.runs import Run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.records import RecordWriter

LETTERS = {"c": Outcome.CORRECT, "w": Outcome.WRONG, "u": Outcome.UNPARSED, "e": Outcome.ERROR}
PLAIN = Protocol(
    "plain",
    Template(
        "plain",
        description=lambda subject: f"About {subject}.\n",
        question=lambda item: item.question,
        choices=lambda item: ("A", "B", "C", "D"),
    ),
    scorer="letter",
)

Outcomes = Mapping[str, str]


def planned(
    items: Outcomes, protocol: Protocol = PLAIN, data: str = "0123abcd", benchmark: str = "mmlu"
) -> PlannedResult:
    """The result of a benchmark that has these items; an item's subject is its id's beginning."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[item.rpartition("-")[0]] = sizes.get(item.rpartition("-")[0], 0) + 1
    return PlannedResult(benchmark, "1", data, 0.25, sizes, None, variants(protocol), {})


def records_of(result: PlannedResult, model: str, items: Outcomes) -> list[Record]:
    return [
        Record(
            model=model,
            benchmark=result.benchmark,
            scorer=result.scorer,
            item=item,
            subject=item.rpartition("-")[0],
            outcome=LETTERS[letter],
            answer="A",
            gold="B",
            sample=sample,
            text="a long answer",
            protocol=result.variants[0].fingerprint,
            data=result.data_hash,
            model_fingerprint=f"weights of {model}",
        )
        for item, letters in items.items()
        for sample, letter in enumerate(letters)
        if letter != "-"
    ]


def make_run(
    root: Path,
    name: str,
    items: Outcomes,
    protocol: Protocol = PLAIN,
    models: tuple[str, ...] = ("demo",),
    data: str = "0123abcd",
    benchmark: str = "mmlu",
    not_run: tuple[str, ...] = (),
    **manifest: Any,
) -> Run:
    """A run of one benchmark, not on disk; ``not_run``: more items that the benchmark has."""
    samples = max(map(len, items.values()), default=1)
    if samples > 1:
        protocol = replace(protocol, ask="text", samples=samples)
    result = planned({**items, **dict.fromkeys(not_run, "")}, protocol, data, benchmark)
    result = replace(result, requested=len(items))
    records = [record for model in models for record in records_of(result, model, items)]
    document = {
        "status": "finished",
        "models": list(models),
        "own_model": False,
        "seed": 0,
        "limit": None,
        "selected": len(items) * len(models),
        "results": [result.as_json()],
        "model_fingerprints": {model: f"weights of {model}" for model in models},
        **manifest,
    }
    return Run(root / name, document, tuple(records))


def together(path: Path, *runs: Run) -> Run:
    """One run that measured what these did."""
    first = runs[0]
    models = list(dict.fromkeys(model for run in runs for model in run.manifest["models"]))
    results = [result for run in runs for result in run.manifest["results"]]
    records = tuple(record for run in runs for record in run.records)
    return Run(path, {**first.manifest, "models": models, "results": results}, records)


def store(run: Run) -> Run:
    """Write a run to its folder."""
    run.path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(run.path)
    folder.write("run.json", run.manifest)
    writer = RecordWriter(folder.records)
    writer.append(*run.records)
    writer.close()
    return run
