"""Runs to report on, made by hand: a log-likelihood run with shots, and texts that mean harm."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Template
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.gates import Verdict
from pytest_llmeval.reports.html import Sources
from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.runs import Run
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.prompts import StoredPrompt
from support import stored_runs

HOSTILE = {
    "script": "<script>window.hacked = 'script'</script>",
    "end": "</script><script>window.hacked = 'end'</script>",
    "comment": "<!-- <script>",
    "image": "<img src=x onerror=\"window.hacked = 'image'\">",
    "attribute": "\" autofocus onfocus=\"window.hacked = 'attribute'\" x='",
    "svg": "</text></svg><svg onload=\"window.hacked = 'svg'\">",
    "style": "</style><style>* { display: none }</style>",
    "template": "{{ 7 * 7 }} {% raw %} ${7 * 7} <%= 7 * 7 %> #{7 * 7}",
    "cdata": "]]><![CDATA[ &lt; &amp; &#0;",
    "direction": "abc \u202etxt.exe\u2066 \u200f def",
    "nul": "before\x00after",
    "ansi": "\x1b[31mred\x1b[0m \x07\x9b",
    "long": "<b>" * 350_000,
}

GOLD = "B"
TEMPLATE = Template(
    "plain",
    description=lambda subject: f"About {subject}.\n\n",
    question=lambda item: f"{item.question}\nAnswer:",
    choices=lambda item: ("A", "B", "C", "D"),
)
PROTOCOL = Protocol("plain", TEMPLATE, scorer="letter", shots=2)


def planned(
    subjects: Mapping[str, int], protocol: Protocol = PROTOCOL, benchmark: str = "mmlu", **more: Any
) -> PlannedResult:
    """A planned result of a benchmark with so many items in each subject."""
    return PlannedResult(
        benchmark, "1", "0123abcd", 0.25, dict(subjects), None, variants(protocol), {}, **more
    )


def question(item: str, text: str = "") -> Item:
    """A benchmark's item with its text."""
    options = ("one", "two", "three", "four")
    return Item(item, item.rpartition("-")[0], text or f"Question of {item}?", 1, options)


def prompt_of(item: Item, protocol: Protocol = PROTOCOL) -> StoredPrompt:
    """What the item's prompt is, with its two shots."""
    shots = [question(f"shot-{n}", f"Example {n} of {item.subject}?") for n in range(2)]
    return StoredPrompt(protocol.render(item, shots), protocol.template.choices(item))


def compared(item: Item, right: bool, sure: float = 0.6, **more: Any) -> Record:
    """A record of compared choices; ``sure``: the share of the chosen one."""
    chosen = 1 if right else 2
    values = [math.log((1 - sure) / 3)] * 4
    values[chosen] = math.log(sure)
    record = Record(
        model="demo",
        benchmark="mmlu",
        scorer="letter",
        item=item.id,
        subject=item.subject,
        outcome=Outcome.CORRECT if right else Outcome.WRONG,
        answer="ABCD"[chosen],
        gold=GOLD,
        logprobs=tuple(values),
        prompt_sha256=prompt_of(item).prompt.sha256,
        protocol=variants(PROTOCOL)[0].fingerprint,
        data="0123abcd",
        model_fingerprint="weights",
    )
    return replace(record, **more)


def written(item: Item, text: str, right: bool, protocol: Protocol, **more: Any) -> Record:
    """A record of a text that a model wrote under a protocol that asks for one."""
    return compared(
        item,
        right,
        logprobs=(),
        text=text,
        scorer=protocol.scorer,
        protocol=variants(protocol)[0].fingerprint,
        **more,
    )


def run_of(
    path: Path, results: Sequence[PlannedResult], records: Sequence[Record], **manifest: Any
) -> Run:
    """A run, not on disk."""
    models = list(dict.fromkeys(record.model for record in records)) or ["demo"]
    document = {
        "status": "finished",
        "models": models,
        "own_model": False,
        "seed": 0,
        "results": [result.as_json() for result in results],
        **manifest,
    }
    return Run(path, document, tuple(records))


def graded(path: Path, grades: Mapping[str, str], **manifest: Any) -> Run:
    """A log-likelihood run: subject → a letter for each of its items, c or w."""
    records = [
        compared(question(f"{subject}-{n:04d}"), letter == "c", 0.4 + 0.05 * (n % 10))
        for subject, letters in grades.items()
        for n, letter in enumerate(letters)
    ]
    sizes = {subject: len(letters) for subject, letters in grades.items()}
    return run_of(path, [planned(sizes)], records, **manifest)


def store(run: Run, **documents: Mapping[str, Any]) -> Path:
    """Write a run to its folder, with its prompts and other documents by name."""
    folder = RunFolder(stored_runs.store(run).path)
    for name, document in {"metrics": run.metrics(), **documents}.items():
        folder.write(f"{name}.json", json.loads(json.dumps(document)))
    return run.path


def sources(
    run: Run,
    gates: Mapping[str, Any] | None = None,
    comparison: Mapping[str, Any] | None = None,
    **more: Any,
) -> Sources:
    """What an HTML report of a run is made of, whose documents are not on disk."""
    gates = gates or {"verdict": "not gated", "gates": []}
    judged = JudgedRun(
        run.path,
        run.manifest,
        run.metrics()["results"],
        gates["verdict"],
        [Verdict.from_json(gate) for gate in gates["gates"]],
        gates.get("thresholds"),
        comparison,
    )
    return Sources(run, judged, **more)


def only_result(*arguments, **more):
    (result,) = report_data(sources(*arguments, **more))["results"]
    return result
