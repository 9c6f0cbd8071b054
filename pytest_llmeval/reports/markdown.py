"""Summary of a run as GitHub Markdown for a pull request, under 60 lines for any run."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pytest_llmeval.core.prices import Prices
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import sort_worst_first
from pytest_llmeval.reports import gfm
from pytest_llmeval.reports.formatting import capitalize
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import duration
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import probability
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.formatting import truncate
from pytest_llmeval.reports.overlap import clean_words
from pytest_llmeval.reports.terminal.audit import HEADER
from pytest_llmeval.reports.terminal.audit import pair_rows
from pytest_llmeval.reports.terminal.audit import pair_title
from pytest_llmeval.reports.terminal.audit import pair_words
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import failure_words
from pytest_llmeval.reports.wording import resolved_words
from pytest_llmeval.reports.wording import sampled_words
from pytest_llmeval.reports.wording import stopped_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.reports.wording import weakest_subjects
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import SubjectRegression
from pytest_llmeval.runs.judging import result_key
from pytest_llmeval.runs.judging import result_name
from pytest_llmeval.runs.measured_orders import order_lines
from pytest_llmeval.runs.reply_problems import doubtful_patches_note
from pytest_llmeval.runs.reply_problems import missing_modules_note
from pytest_llmeval.runs.usage import Cost
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import ResourceUse
from pytest_llmeval.runs.usage import costs
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.usage_log import stored_prices

_ROWS = 8
_REMARKS = 4
_METRICS = "metrics.json"
_FAILURES = 3  # reasons of errors of one result
_WEAKEST = 3  # subjects of one result
_WEAKEST_RESULTS = 3
_NAME = 120  # characters of a name


def run_markdown(
    run: JudgedRun, link: str | None = None, used: Mapping[Key, ResourceUse] | None = None
) -> str:
    """Return verdict, gates that did not pass, results, weakest and worse subjects, run folder.

    ``link``: address of the run, such as that of the job. ``used``: resource use of the results, as
    ``runs.usage.spent`` returns it.
    """
    models = ", ".join(
        gfm.code_span(truncate(model, _NAME, "run.json")) for model in run.models[:3]
    )
    more = f" and {len(run.models) - 3} more" if len(run.models) > 3 else ""
    blocks = [f"### llmeval: {run.verdict.upper()} — {models}{more}"]
    blocks.append(_counts(run))
    blocks += _gates(run)
    blocks += _results(run, used or {})
    blocks.append("\n".join(_weakest(run)))
    blocks += _pair(run)
    blocks.append("\n".join(_order_tests(run)))
    blocks += _regressed(run)
    blocks.append(", ".join(_source(run, link)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _source(run: JudgedRun, link: str | None) -> Iterator[str]:
    """Yield the run folder, the duration, the cost and the link."""
    yield f"run {gfm.code_span(run_name(run.path))}"
    if run.manifest.get("seconds") is not None:
        yield f"took {duration(run.manifest['seconds'])}"
    amount = total_cost(run.manifest)
    if amount is not None:
        yield f"cost {gfm.escape_markdown(stored_prices(run.manifest).format_amount(amount))}"
    if link:
        yield f"[job]({link})"


def _counts(run: JudgedRun) -> str:
    """Return the verdict, the errors and the state of the run in one paragraph."""
    counts = count_states(run.verdicts)
    file = f" ({gfm.code_span(run.thresholds)})" if run.thresholds else ""
    parts = [f"**{verdict_words(run.verdict, counts, run.items_failed)}**{file}."]
    if run.verdict != "pass" and (undecided := counts.get("undecided")):
        parts.append(f"{gfm.escape_markdown(capitalize(undecided_words(undecided)))}.")
    if run.errors:
        parts.append(
            f"**{count(run.errors, 'answer')} ended in errors:** the results are incomplete."
        )
    if unfinished := unfinished_words(run.manifest):
        parts.append(f"**{gfm.escape_markdown(capitalize(unfinished))}.**")
    return " ".join(parts)


def _gates(run: JudgedRun) -> Iterator[str]:
    """Yield the gates that failed, are undecided or passed with a warning, worst first."""
    states = ("failed", "undecided", "warned")
    gates = [
        verdict
        for verdict in sort_worst_first(group_subject_verdicts(run.verdicts))
        if verdict.state in states
    ]
    if gates:
        rows = [_gate_row(verdict) for verdict in gates[:_ROWS]]
        yield gfm.table(("gate", "measured", "bound", "margin", "why"), rows, texts=("why",))
        yield _rest(len(gates), "gates", "gates.json")


def _gate_row(verdict: Verdict) -> tuple[str, ...]:
    status = "WARN" if verdict.state == "warned" else verdict.status.upper()
    digits = 0 if verdict.metric == "max_errors" else 4
    return (
        f"{status} {gfm.code_cell(truncate(verdict.id, 2 * _NAME, 'gates.json'))}",
        number(verdict.measured, digits),
        gfm.code_cell(verdict.bound) if verdict.bound else "",
        signed(verdict.margin, digits),
        gfm.escape_markdown(truncate(verdict.warning or verdict.reason, 2 * _NAME, "gates.json")),
    )


def _results(run: JudgedRun, used: Mapping[Key, ResourceUse]) -> Iterator[str]:
    several = len(run.models) > 1
    paid, prices = costs(run.manifest, map(result_key, run.results)), stored_prices(run.manifest)
    timed = any(use.seconds is not None for use in used.values())
    rows = []
    for result in run.results[:_ROWS]:
        key = result_key(result)
        name = f"{result['model']} {result_name(result)}" if several else result_name(result)
        rows.append(
            (
                gfm.code_cell(truncate(name, _NAME, "metrics.json")),
                f"{result['answered']:,} of {result['n_total']:,}",
                number(result["accuracy"]),
                interval(result["wilson95"]),
                number(result["macro_accuracy"]),
                signed(result["normalized_gain"]),
                f"{result['unparsed']:,}",
                f"{result['errors']:,}",
                *([_time(used.get(key))] if timed else []),
                *([_cost(paid.get(key), prices)] if paid else []),
            )
        )
    header = ["result", "answered", "accuracy", "95 % interval", "macro", "gain", "unparsed"]
    header += ["errors", *(["model time"] if timed else []), *(["cost"] if paid else [])]
    yield gfm.table(header, rows)
    yield _rest(len(run.results), "results", "metrics.json")
    for result in run.results[:_ROWS]:
        if words := all_tied_words(result):
            yield f"**{gfm.escape_markdown(truncate(result_name(result), _NAME, 'metrics.json'))}: {words}**"
    remarks = [
        f"- {gfm.escape_markdown(f'{truncate(result_name(result), _NAME, _METRICS)}: {remark}')}"
        for result in run.results
        for remark in _remarks(result)
    ]
    if more := len(remarks) - _REMARKS:
        remarks[_REMARKS:] = (
            [f"- and {more:,} more in {gfm.code_span(_METRICS)}"] if more > 0 else []
        )
    yield "\n".join(remarks)
    for line in dict.fromkeys(
        f"{result['benchmark']}: {result['excluded']}"
        for result in run.results
        if result.get("excluded")
    ):
        yield gfm.escape_markdown(truncate(line, 2 * _NAME, "metrics.json"))


def _remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sample size, the reasons of lost answers, and the options that help."""
    if result["sampled"] is not None:
        yield sampled_words(result)
    if stopped := stopped_words(result):
        yield stopped
    if clean := clean_words(result):
        yield clean
    yield from islice(failure_words(result), _FAILURES)
    if resolved := resolved_words(result):
        yield resolved
    if truncated := truncated_words(result):
        yield truncated
    if modules := result.get("lacked_modules"):
        yield missing_modules_note(modules)
    if patches := result.get("doubtful"):
        yield doubtful_patches_note(patches)


def _weakest(run: JudgedRun) -> Iterator[str]:
    """Yield the weakest subjects of the first results that have several."""
    for result in run.results[:_WEAKEST_RESULTS]:
        total, weakest = weakest_subjects(result, _WEAKEST)
        if weakest:
            name = gfm.code_span(truncate(result_name(result), _NAME, _METRICS))
            entries = (
                f"{gfm.code_span(truncate(entry.subject, _NAME, _METRICS))} {entry.text}"
                for entry in weakest
            )
            yield f"- weakest of {total:,} subjects, {name}: {', '.join(entries)}"


def _pair(run: JudgedRun) -> Iterator[str]:
    """Yield texts against letters for the first benchmark that has both."""
    for pair in run.pairs[:1]:
        more = f"; {len(run.pairs) - 1:,} more in `metrics.json`" if len(run.pairs) > 1 else ""
        yield f"{gfm.escape_markdown(f'{pair_title(pair)}; {pair_words(pair)}')}{more}"
        rows = [(gfm.code_cell(name), *cells) for name, *cells in pair_rows(pair)]
        yield gfm.table(HEADER, rows)


def _order_tests(run: JudgedRun) -> Iterator[str]:
    """Yield the tests of published orders."""
    for line in islice(order_lines(run.contamination), _REMARKS):
        yield f"- {gfm.escape_markdown(truncate(line, 3 * _NAME, _METRICS))}"
    if (more := len(run.contamination) - _REMARKS) > 0:
        yield f"- and {more:,} more in {gfm.code_span(_METRICS)}"


def _time(used: ResourceUse | None) -> str:
    return "-" if used is None or used.seconds is None else duration(used.seconds)


def _cost(paid: Cost | None, prices: Prices) -> str:
    if paid is None:
        return "-"
    shared = f" ({len(paid.scorers)} results)" if len(paid.scorers) > 1 else ""
    return gfm.escape_markdown(prices.format_amount(paid.amount)) + shared


def _regressed(run: JudgedRun) -> Iterator[str]:
    if run.comparison is None:
        return
    baseline = gfm.code_span(truncate(str(run.comparison["baseline"]), _NAME, "comparison.json"))
    worse = run.regressions()
    if any(not comparison["comparable"] for comparison in run.comparison["comparisons"]):
        yield (
            f"Protocols, data or answered items differ from those of the baseline {baseline}: no"
            " verdict on them."
        )
        if not worse:
            return
    if not worse:
        yield f"No subject is significantly worse than in the baseline {baseline}."
        return
    yield (
        f"**{count(len(worse), 'subject')} significantly worse** than in the baseline {baseline}"
        " (exact paired test, Holm-adjusted):"
    )
    header = ("subject", "n", "baseline", "candidate", "drop", "p")
    yield gfm.table(header, [_regressed_row(subject, run) for subject in worse[:_ROWS]])
    yield _rest(len(worse), "subjects", "comparison.json")


def _regressed_row(worse: SubjectRegression, run: JudgedRun) -> Sequence[str]:
    several = len(run.results) > 1
    name = f"{worse.result} {worse.subject}" if several else worse.subject
    drop, p_value = signed(worse.drop), probability(worse.p_value)
    numbers = (number(worse.baseline), number(worse.candidate), drop, p_value)
    return (gfm.code_cell(truncate(name, _NAME, "comparison.json")), f"{worse.items:,}", *numbers)


def _rest(count: int, what: str, file: str) -> str:
    return f"and {count - _ROWS:,} more {what} in {gfm.code_span(file)}" if count > _ROWS else ""
