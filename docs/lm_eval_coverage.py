"""Count the tasks of the installed lm-eval that ``lm_eval_task`` can evaluate, by family.

python docs/lm_eval_coverage.py           prints the page docs/explanation/lm-eval-coverage.md
python docs/lm_eval_coverage.py --write   writes it

Configurations are read and no code of a task is run: a task whose documents or code fail when it is
loaded counts as supported. A family is a folder of lm-eval's tasks.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.lm_eval.configuration import decoding_of
from pytest_llmeval.catalog.lm_eval.configuration import output_type
from pytest_llmeval.catalog.lm_eval.configuration import refusal
from pytest_llmeval.catalog.lm_eval.configuration import unsupported_metrics
from pytest_llmeval.core import ConfigError
from pytest_llmeval.sources.lm_eval_index import Entry
from pytest_llmeval.sources.lm_eval_index import installed_entries
from pytest_llmeval.sources.lm_eval_index import lm_eval_version
from pytest_llmeval.sources.lm_eval_index import read_config

PAGE = Path(__file__).parent / "explanation" / "lm-eval-coverage.md"

HEAD = """\
# Coverage of lm-eval

[`lm_eval_task`](../howto/lm-eval-tasks.md) evaluates tasks of lm-evaluation-harness. This page counts
the tasks of lm-eval {version} from their configurations; `docs/lm_eval_coverage.py` writes it. A task is
supported in part if some of its metrics are computed and others are left out.
"""


@dataclass(frozen=True)
class Coverage:
    """A task: its family, kind of output, and whether it is supported."""

    family: str
    output: str
    #: Why it is refused; None if it is supported.
    reason: str | None
    #: Metrics that are left out.
    left_out: bool


def coverage(entry: Entry, tasks: Path) -> Coverage:
    """Return the coverage of one task."""
    family = Path(entry.file).relative_to(tasks).parts[0]
    try:
        config: Mapping[str, Any] = {"class": True} if entry.kind == "class" else read_config(entry)
        reason = refusal(config)
        if reason is None and output_type(config) == "generate_until":
            decoding_of(config)
    except ConfigError as error:
        return Coverage(family, "unreadable", str(error), False)
    output = "class" if entry.kind == "class" else output_type(config)
    return Coverage(family, output, reason, reason is None and bool(unsupported_metrics(config)))


def kind_of_reason(reason: str) -> str:
    """Return a reason without the names and numbers of one task."""
    if reason.startswith("none of its metrics"):
        return "its metrics are not 0 or 1 for a document, or computed by code of the task"
    reason = re.sub(r"takes \d+ answers", "takes several answers", reason)
    reason = re.sub(r"its decoding has .* \(", "its decoding has other options (", reason)
    return re.sub(r"(selected by code) .*", r"\1 (fewshot_config.sampler)", reason)


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table; numbers are right-aligned."""
    titles = list(head)
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def page(covered: list[Coverage], version: str) -> str:
    """Return the page."""
    yaml = [entry for entry in covered if entry.output != "class"]
    supported = sum(entry.reason is None for entry in yaml)
    whole = sum(entry.reason is None and not entry.left_out for entry in yaml)
    reasons = Counter(kind_of_reason(entry.reason) for entry in covered if entry.reason)
    outputs = sorted({entry.output for entry in covered})
    families = sorted({entry.family for entry in covered})
    by_family = {
        family: [entry for entry in covered if entry.family == family] for family in families
    }
    with_tasks = sum(any(entry.reason is None for entry in by_family[name]) for name in families)
    blocks = [
        HEAD.format(version=version).strip(),
        f"Of {len(yaml):,} tasks in YAML, {supported:,} are supported ({supported / len(yaml):.1%}),"
        f" {whole:,} with all their metrics. {len(covered) - len(yaml)} tasks are Python classes."
        f" {with_tasks} of {len(families)} families have a supported task.",
        table(
            ("output", "tasks", "supported", "in part"),
            [(output, *_counts([e for e in covered if e.output == output])) for output in outputs],
        ),
        "## Reasons",
        table(("why a task is refused", "tasks"), reasons.most_common()),
        "## Families",
        table(
            ("family", "tasks", "supported", "in part"),
            [(f"`{family}`", *_counts(entries)) for family, entries in by_family.items()],
        ),
    ]
    return "\n\n".join(blocks) + "\n"


def _counts(entries: list[Coverage]) -> tuple[int, int, int]:
    supported = [entry for entry in entries if entry.reason is None]
    return len(entries), len(supported), sum(entry.left_out for entry in supported)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    entries = [entry for entry in installed_entries().values() if entry.kind in ("task", "class")]
    tasks = next(
        parent
        for parent in Path(entries[0].file).parents
        if parent.parts[-2:] == ("lm_eval", "tasks")
    )
    covered = [coverage(entry, tasks) for entry in entries]
    text = page(covered, lm_eval_version())
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
