"""A run in thirty seconds: GitHub Markdown for a pull request, under 60 lines for any run."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pytest_llmeval.core.prices import Prices
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import fold
from pytest_llmeval.gates import worst_first
from pytest_llmeval.reports import gfm
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import duration
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import number
from pytest_llmeval.reports.formatting import probability
from pytest_llmeval.reports.formatting import sentence
from pytest_llmeval.reports.formatting import signed
from pytest_llmeval.reports.terminal.audit import HEADER
from pytest_llmeval.reports.terminal.audit import pair_rows
from pytest_llmeval.reports.terminal.audit import pair_title
from pytest_llmeval.reports.terminal.audit import pair_words
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import failed_items_words
from pytest_llmeval.reports.wording import failure_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import Regressed
from pytest_llmeval.runs.judging import key_of
from pytest_llmeval.runs.judging import name_of
from pytest_llmeval.runs.reply_problems import lacked_words
from pytest_llmeval.runs.usage import Cost
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import costs
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.usage_log import prices_of

_ROWS = 8
_REMARKS = 4
_METRICS = "metrics.json"
_FAILURES = 3  # reasons of errors of one result
_NAME = 120  # characters shown of a name
_VERDICTS = {"pass": "passed", "fail": "failed", "not gated": "not gated"}


def run_markdown(
    run: JudgedRun, link: str | None = None, used: Mapping[Key, Spent] | None = None
) -> str:
    """The verdict, the gates that are not green, the results, the subjects that got worse.

    ``link``: where the run is to be seen, such as the address of the job. ``used``: what the
    answers of its results took, by ``spent``.
    """
    models = ", ".join(gfm.code(cut(model, _NAME, "run.json")) for model in run.models[:3])
    more = f" and {len(run.models) - 3} more" if len(run.models) > 3 else ""
    blocks = [f"### llmeval: {_VERDICTS.get(run.verdict, run.verdict)} — {models}{more}"]
    blocks.append(_counts(run))
    blocks += _gates(run)
    blocks += _results(run, used or {})
    blocks += _pair(run)
    blocks += _regressed(run)
    blocks.append(", ".join(_about(run, link)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _about(run: JudgedRun, link: str | None) -> Iterator[str]:
    """Where the run is, how long it took, and what it cost."""
    yield f"run {gfm.code(run_name(run.path))}"
    if run.manifest.get("seconds") is not None:
        yield f"took {duration(run.manifest['seconds'])}"
    amount = total_cost(run.manifest)
    if amount is not None:
        yield f"cost {gfm.plain(prices_of(run.manifest).format_amount(amount))}"
    if link:
        yield f"[job]({link})"


def _counts(run: JudgedRun) -> str:
    """How many gates and items there were, in one paragraph."""
    of = f" of {gfm.code(run.thresholds)}" if run.thresholds else ""
    if not run.verdicts:
        parts = ["No gate was judged."]
    else:
        counts = count_states(run.verdicts)
        judged = sum(counts.values()) - counts.get("not run", 0)
        warned = f", {counts['warned']:,} warned" if "warned" in counts else ""
        parts = [
            f"{counts.get('passed', 0):,} of {judged:,} gates{of} passed, {counts.get('failed', 0):,}"
            f" failed, {counts.get('undecided', 0):,} undecided{warned}."
        ]
        if undecided := counts.get("undecided"):
            parts.append(f"{gfm.plain(sentence(undecided_words(undecided)))}.")
    if run.items_failed:
        parts.append(f"**{failed_items_words(run.items_failed)}.**")
    if run.errors:
        parts.append(
            f"**{count(run.errors, 'answer')} ended in errors:** the results are incomplete."
        )
    if unfinished := unfinished_words(run.manifest):
        parts.append(f"**{gfm.plain(sentence(unfinished))}.**")
    return " ".join(parts)


def _gates(run: JudgedRun) -> Iterator[str]:
    """The gates that failed, stayed undecided or passed with a warning, worst first."""
    red = ("failed", "undecided", "warned")
    shown = [one for one in worst_first(fold(run.verdicts)) if one.state in red]
    if shown:
        rows = [_gate_row(one) for one in shown[:_ROWS]]
        yield gfm.table(("gate", "measured", "bound", "margin", "why"), rows)
        yield _rest(len(shown), "gates", "gates.json")


def _gate_row(verdict: Verdict) -> tuple[str, ...]:
    status = "WARN" if verdict.state == "warned" else verdict.status.upper()
    digits = 0 if verdict.metric == "max_errors" else 4
    return (
        f"{status} {gfm.cell(cut(verdict.id, 2 * _NAME, 'gates.json'))}",
        number(verdict.measured, digits),
        gfm.cell(verdict.bound) if verdict.bound else "",
        signed(verdict.margin, digits),
        gfm.plain(cut(verdict.warning or verdict.reason, 2 * _NAME, "gates.json")),
    )


def _results(run: JudgedRun, used: Mapping[Key, Spent]) -> Iterator[str]:
    several = len(run.models) > 1
    paid, prices = costs(run.manifest, map(key_of, run.results)), prices_of(run.manifest)
    timed = any(one.seconds is not None for one in used.values())
    rows = []
    for result in run.results[:_ROWS]:
        key = key_of(result)
        name = f"{result['model']} {name_of(result)}" if several else name_of(result)
        rows.append(
            (
                gfm.cell(cut(name, _NAME, "metrics.json")),
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
            yield f"**{gfm.plain(cut(name_of(result), _NAME, 'metrics.json'))}: {words}**"
    remarks = [
        f"- {gfm.plain(f'{cut(name_of(result), _NAME, _METRICS)}: {remark}')}"
        for result in run.results
        for remark in _remarks(result)
    ]
    if more := len(remarks) - _REMARKS:
        remarks[_REMARKS:] = [f"- and {more:,} more in {gfm.code(_METRICS)}"] if more > 0 else []
    yield "\n".join(remarks)
    for line in dict.fromkeys(
        f"{result['benchmark']}: {result['excluded']}"
        for result in run.results
        if result.get("excluded")
    ):
        yield gfm.plain(cut(line, 2 * _NAME, "metrics.json"))


def _remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """What a result lost answers by, and the options that help."""
    yield from islice(failure_words(result), _FAILURES)
    if truncated := truncated_words(result):
        yield truncated
    if modules := result.get("lacked_modules"):
        yield lacked_words(modules)


def _pair(run: JudgedRun) -> Iterator[str]:
    """Texts against letters, of the first benchmark that has both."""
    for pair in run.pairs[:1]:
        more = f"; {len(run.pairs) - 1:,} more in `metrics.json`" if len(run.pairs) > 1 else ""
        yield f"{gfm.plain(f'{pair_title(pair)}; {pair_words(pair)}')}{more}"
        rows = [(gfm.cell(name), *cells) for name, *cells in pair_rows(pair)]
        yield gfm.table(HEADER, rows)


def _time(used: Spent | None) -> str:
    return "-" if used is None or used.seconds is None else duration(used.seconds)


def _cost(paid: Cost | None, prices: Prices) -> str:
    if paid is None:
        return "-"
    shared = f" ({len(paid.scorers)} results)" if len(paid.scorers) > 1 else ""
    return gfm.plain(prices.format_amount(paid.amount)) + shared


def _regressed(run: JudgedRun) -> Iterator[str]:
    if run.comparison is None:
        return
    baseline = gfm.code(cut(str(run.comparison["baseline"]), _NAME, "comparison.json"))
    if any(not one["comparable"] for one in run.comparison["comparisons"]):
        yield f"Protocols or data differ from those of the baseline {baseline}: no verdict on them."
    worse = run.regressed()
    if not worse:
        yield f"No subject is significantly worse than in the baseline {baseline}."
        return
    yield (
        f"**{count(len(worse), 'subject')} significantly worse** than in the baseline {baseline}"
        " (exact paired test, Holm-adjusted):"
    )
    header = ("subject", "n", "baseline", "candidate", "drop", "p")
    yield gfm.table(header, [_regressed_row(one, run) for one in worse[:_ROWS]])
    yield _rest(len(worse), "subjects", "comparison.json")


def _regressed_row(one: Regressed, run: JudgedRun) -> Sequence[str]:
    several = len(run.results) > 1
    name = f"{one.result} {one.subject}" if several else one.subject
    drop, p_value = signed(one.drop), probability(one.p_value)
    numbers = (number(one.baseline), number(one.candidate), drop, p_value)
    return (gfm.cell(cut(name, _NAME, "comparison.json")), f"{one.items:,}", *numbers)


def _rest(count: int, what: str, file: str) -> str:
    return f"and {count - _ROWS:,} more {what} in {gfm.code(file)}" if count > _ROWS else ""
