"""``llmeval extract``: how ``choice`` and ``number`` find an answer in a reply."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.reports.extraction import candidate_words
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.scorers.choice.reader import Candidate
from pytest_llmeval.scorers.choice.reader import Extraction
from pytest_llmeval.scorers.choice.reader import explain_choice
from pytest_llmeval.scorers.number import explain_number

_AROUND = 30  # characters shown on either side of a candidate


def add_commands(commands: Any) -> None:
    """Add ``extract`` to the subparsers of ``llmeval``."""
    extract = commands.add_parser(
        "extract", help="print the answer that the scorers choice and number find in a reply"
    )
    extract.add_argument(
        "reply", metavar="TEXT|FILE|-", help="a reply, its file, or standard input"
    )
    extract.add_argument("--explain", action="store_true", help="print all candidates, best first")
    what = extract.add_mutually_exclusive_group()
    what.add_argument("--options", nargs="+", metavar="OPTION", help="the texts of the options")
    what.add_argument("--number", action="store_true", help="find a number instead of an option")
    extract.add_argument("--labels", help="the letters of the options (ABCD)")
    extract.add_argument(
        "--language", metavar="CODE", help="of the reply, with --number: de, fr, …"
    )
    extract.set_defaults(command=_extract)


def _extract(options: argparse.Namespace) -> int:
    if options.number and options.labels:
        raise ConfigError("--labels: a number has none; leave out --labels or --number")
    if options.language and not options.number:
        raise ConfigError("--language: read with --number only")
    texts = options.options or [""] * len(options.labels or "ABCD")
    if options.labels and len(options.labels) < len(texts):
        raise ConfigError(f"--labels: {len(options.labels)} letters for {len(texts)} options")
    reply = _read(options.reply)
    if options.number:
        extraction = explain_number(reply, options.language)
    else:
        extraction = explain_choice(reply, texts, labels=options.labels)
    print_line(extraction.answer or "no answer")
    if options.explain:
        for line in explanation(extraction):
            print_line(line)
    return 0


def _read(reply: str) -> str:
    """Return the reply itself, or the content of a file or of standard input."""
    if reply == "-":
        return sys.stdin.read()
    if not os.path.isfile(reply):  # unlike Path's, False for a name that is too long
        return reply
    try:
        return Path(reply).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{reply}: not UTF-8 ({error.reason} at byte {error.start})") from None


def explanation(extraction: Extraction) -> Iterator[str]:
    """Yield lines on the candidates, by rank; the first one decides."""
    if not extraction.candidates:
        yield "no candidates"
    for rank, candidate in enumerate(extraction.candidates, start=1):
        answer = candidate.answer or "none"
        yield f"{rank}. {answer}  {candidate_words(candidate)}"
        yield f"   at {candidate.start}: {_snippet(extraction.reply, candidate)}"


def _snippet(reply: str, candidate: Candidate) -> str:
    start, end = max(0, candidate.start - _AROUND), candidate.end + _AROUND
    parts = (
        reply[start : candidate.start],
        reply[candidate.start : candidate.end],
        reply[candidate.end : end],
    )
    before, span, after = map(one_line, parts)
    return f"{'…' if start else ''}{before} ⟦{span[:200]}⟧ {after}{'…' if end < len(reply) else ''}"
