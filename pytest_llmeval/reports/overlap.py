"""Texts on the overlap of benchmarks with a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.overlap.report import GPT3
from pytest_llmeval.overlap.report import MOST_UNJUDGED
from pytest_llmeval.overlap.report import PALM
from pytest_llmeval.overlap.report import BenchmarkOverlap
from pytest_llmeval.overlap.report import ItemOverlap
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import shorten
from pytest_llmeval.reports.formatting import signed

_SHOWN = 5
_PASSAGE = 80


def overlap_lines(report: OverlapReport) -> Iterator[str]:
    """Yield the result of a pass: its corpus, every benchmark with its longest matches, warnings."""
    yield (
        f"corpus: {count(report.files, 'file')}, {count(report.documents, 'document')},"
        f" {report.words:,} words"
    )
    for part in report.benchmarks:
        yield from _benchmark_lines(part)
    for reason in report.unread:
        yield f"not read: {reason}"
    if report.unread:
        files = count(len(report.unread), "file")
        yield f"incomplete: {files} not read to the end; the same command reads them again"
    for warning in report.warnings:
        yield f"warning: {warning}"


def _benchmark_lines(part: BenchmarkOverlap) -> Iterator[str]:
    overlapping = part.overlapping
    share = f" ({len(overlapping) / part.judged:.2%})" if part.judged else ""
    matches = part.matches.values()
    palm = sum(match.windows_share >= PALM for match in matches)
    gpt3 = sum(match.longest >= GPT3 for match in matches)
    yield (
        f"{part.benchmark}: {len(overlapping):,} of {part.judged:,} judged items overlap{share}: at"
        f" least half of the words in a row in one document; {palm:,} by {PALM:.0%} of the windows,"
        f" {gpt3:,} by {GPT3} words in a row"
    )
    if unjudged := unjudged_words(part):
        yield f"{part.benchmark}: {unjudged}"
    longest = sorted(
        overlapping.items(), key=lambda entry: (-entry[1].longest / entry[1].words, entry[0])
    )
    for id, match in longest[:_SHOWN]:
        where = f"{match_words(match)}, in {match.document}"
        yield f"  {id} {where}: {one_line(shorten(match.passage, _PASSAGE))}"
    if len(longest) > _SHOWN:
        yield f"  and {count(len(longest) - _SHOWN, 'more item')}"


def clean_lines(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Describe the scores without overlapping items, one line for each result that has them.

    ``results``: entries of ``metrics.json``.
    """
    for result in results:
        words = clean_words(result)
        if words is not None:
            yield f"{result['benchmark']}[{result['scorer']}]: {words}"


def clean_words(numbers: Mapping[str, Any]) -> str | None:
    """Describe the score without overlapping items and the gain; None without a search.

    ``numbers``: a result's entry of ``metrics.json``.
    """
    entry = numbers.get("overlap")
    if entry is None:
        return None
    text = f"{entry['overlapping']:,} of {count(entry['judged'], 'judged item')} overlap with the corpus"
    clean, overlap = entry["clean"], entry["overlap"]
    if entry["gain"] is not None and overlap["accuracy"] is not None:
        text += (
            f"; {clean['accuracy']:.4f} without them, {overlap['accuracy']:.4f} on them: a gain of"
            f" {signed(entry['gain'])} {interval(entry['gain_interval95'])}"
        )
    unjudged = entry["items"] - entry["judged"]
    if unjudged > MOST_UNJUDGED * entry["items"]:
        text += f"; {count(unjudged, 'item')} not judged"
    return text


def match_words(match: ItemOverlap) -> str:
    """Describe a match: ``31 of 40 words in a row, 24 of 33 windows``."""
    return (
        f"{match.longest:,} of {match.words:,} words in a row, {match.windows_seen:,} of"
        f" {match.windows:,} windows"
    )


def unjudged_words(part: BenchmarkOverlap) -> str | None:
    """Describe how many items were not judged, with a warning if they are many; None if all were."""
    if not part.unjudged:
        return None
    number = len(part.unjudged)
    share = number / part.items
    warning = f", more than {MOST_UNJUDGED:.0%}" if share > MOST_UNJUDGED else ""
    return (
        f"{count(number, 'item')} not judged ({share:.1%}{warning}): fewer than 8 words, or no wording"
        " of their own"
    )
