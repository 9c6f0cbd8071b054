"""Extraction of the chosen option from generated text.

Only explicit statements, verdicts, lines and texts of options count. Two labels offered together, a
denial and a question are not statements. Nothing is guessed.

Each kind has a method that yields candidates; ``_RANKS`` orders them. A bounded number of labels and
announcements is read, from the end of the reply, each within a bounded window, so that the time is
linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import normalization
from pytest_llmeval.scorers.choice import phrases
from pytest_llmeval.scorers.choice.tokens import lex
from pytest_llmeval.scorers.response_text import answer_to_item
from pytest_llmeval.scorers.response_text import scoring_fault
from pytest_llmeval.scorers.response_text import text_score


class Role(StrEnum):
    """Presentation of a candidate in a reply; scorers rank roles and use the last of equal rank."""

    WHOLE_REPLY = "whole reply"  # the reply is the text of an option and nothing else
    MARKED = "marked"  # after a mark that a prompt prescribes, such as ``####``
    BOXED = "boxed"  # inside ``\\boxed{…}``
    ANNOUNCED = "announced"  # after words that announce the answer, or before "is the answer"
    VERDICT = "verdict"  # an option called correct in a sentence, a table, or a list of verdicts
    CONCLUSION = "conclusion"  # after "therefore", "it must be", and similar
    LABELLED_LINE = "labelled line"  # the label at the beginning of a line
    OPTION_TEXT = "option text"  # the whole text of an option, without its label
    BARE = "bare"  # a label alone on a line, or a number without context
    SUPPOSED = "supposed"  # the answer in a different case


@dataclass(frozen=True, slots=True)
class Candidate:
    """Range of a reply that may be its answer."""

    answer: str | None
    """None for an explicit statement that names no single answer ("A or B")."""
    role: Role
    start: int
    """First character in ``Extraction.reply``."""
    end: int
    """Position after the last character in ``Extraction.reply``."""
    rule: str
    """Reason for the role, in one line."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Candidates that were extracted from a reply."""

    reply: str
    """Part of the text that is read, without reasoning and without an invented next question."""
    candidates: tuple[Candidate, ...]
    """Ordered by rank, best first; the first one determines the answer."""

    @property
    def answer(self) -> str | None:
        """Answer of the best candidate; None if there is none."""
        return self.candidates[0].answer if self.candidates else None


_LABELS_READ = 250  # number of labels that are read, from the last
_WORDS_READ = 30  # number of announcements of texts that are read, from the last
_EDGE = 2000  # characters at either end whose lines are read

# Of candidates of equal rank, the last one is used.
_RANKS = {Role.WHOLE_REPLY: 0, Role.BOXED: 1, Role.ANNOUNCED: 1, Role.CONCLUSION: 1, Role.BARE: 2}
_RANKS |= {Role.VERDICT: 3, Role.LABELLED_LINE: 4, Role.OPTION_TEXT: 5, Role.SUPPOSED: 6}
_ROLES = {"boxed": Role.BOXED, "loose": Role.CONCLUSION}

# Short for "Answer:", but also the label of an option.
_SHORT_ANSWER = re.compile(r"[\s*_]{0,4}A[*_]{0,2}[:：]")
_LINE = re.compile(r"[^\n]*[^\s\n][^\n]*")
_LINE_END = re.compile(r"\n|</\w{0,20}answer>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*")
_LONE = re.compile(r"-?O?L[.:;-]?")
# Most replies to a question with letters are only a label; this saves the full analysis.
_ONLY_LABEL = re.compile(r"\s*(?:([A-Z])[.)]?|\(([A-Z])\))\s*")
_LABELLED = re.compile(r"[*_]{0,2}[)\].:：）】、．]{1,2}[*_]{0,2}(?=\s|$|[^\x00-\x7f])")


def choice(item: Item, response: Response) -> Score:
    """Score the option that the generated text names; no readable option is ``unparsed``."""
    fault = scoring_fault(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    if len(item.options) > len(LABELS):
        return Score(
            Outcome.ERROR,
            error=f"{len(item.options)} options: only the labels of {len(LABELS)} can be read",
        )
    answer = extract_choice(response.text or "", item.options)
    return text_score(answer, answer == item.gold_label)


def extract_choice(text: str, options: Sequence[str], *, labels: str | None = None) -> str | None:
    """Return the label of the option that ``text`` chooses, or None; never raises.

    ``labels``: the options' letters, by default A, B, C…; the equivalent letters of other scripts are
    read as these. Reasoning is removed, and a text that ends within its reasoning has no answer; so
    is a next question that the model invents. The answer is that of the candidate with the best rank
    (``explain_choice``).
    """
    only = _ONLY_LABEL.fullmatch(text)
    if only is not None:
        label = only[1] or only[2]
        if label in (LABELS if labels is None else labels)[: len(options)]:
            return label
    return explain_choice(text, options, labels=labels).answer


def explain_choice(text: str, options: Sequence[str], *, labels: str | None = None) -> Extraction:
    """Return the candidates for the answer in ``text``, best first.

    The parameters are those of ``extract_choice``.
    """
    labels = (LABELS if labels is None else labels)[: len(options)]
    labelled = tuple(options[: len(labels)])
    reply = answer_to_item(text, lambda part: bool(_ranked(part, labelled, labels))) or ""
    return Extraction(reply, _ranked(reply, labelled, labels))


def _ranked(reply: str, options: tuple[str, ...], labels: str) -> tuple[Candidate, ...]:
    listed = _Reader(reply, options, labels).candidates() if reply and labels else []
    return tuple(sorted(listed, key=lambda candidate: (_RANKS[candidate.role], -candidate.end)))


class _Line(NamedTuple):
    """Line at position ``start`` of the reply, with the tokens from ``first`` to ``end``."""

    text: str
    start: int
    first: int
    end: int


class _Reader:
    """Finds the candidates in one reply with the labels and options of one item."""

    def __init__(self, text: str, options: tuple[str, ...], labels: str) -> None:
        self.text = text
        self.order = labels
        plain = [normalization.plain_text(option) for option in options]
        texts = [(text, label) for text, label in zip(plain, labels, strict=True) if text]
        # Longest first, so that "iron" does not match in "iron oxide".
        self.options = sorted(
            (pair for pair in texts if pair[0].upper() not in tuple(labels)),
            key=lambda pair: -len(pair[0]),
        )
        self.tokens = lex(text, labels, plain)
        self.labels = self.tokens.labels
        self.last = list(islice(reversed(self.labels), _LABELS_READ))

    def candidates(self) -> list[Candidate]:
        """Return all candidates, or only the whole reply if it is the text of an option."""
        short = self.options and len(self.text) <= 2 * len(self.options[0][0]) + 80
        if short and len(same := self._options_of(self.text)) == 1:
            rule = "the reply is the option's text"
            return [Candidate(same[0], Role.WHOLE_REPLY, 0, len(self.text), rule)]
        texts = list(self._announced_texts())
        verdicts, concluded = self._verdicts()
        labels = (
            label
            for label in self._stated_labels()
            # A letter in an announced text is not a label; "hence, C is correct" overrides "which is B".
            if not any(text.start <= label.start < text.end for text in texts)
            and (label.role is not Role.CONCLUSION or label.end > concluded)
        )
        return [*texts, *labels, *verdicts, *self._edge_lines(), *self._option_text()]

    def _options_of(self, text: str) -> list[str]:
        """Return the labels of the options with this text."""
        plain = normalization.plain_text(text)
        return [label for option, label in self.options if option == plain]

    # Explicit statements

    def _stated_labels(self) -> Iterator[Candidate]:
        """Yield labels that are announced or called the answer."""
        for number in self.last:
            announcement = phrases.announcement(self.tokens, number)
            candidate = None if announcement is None else self._announced(number, announcement)
            if candidate is not None:
                yield candidate
            elif phrases.label_verdict(self.tokens, number) == "the answer":
                yield self._label(number, Role.ANNOUNCED, "called the answer")

    def _label(self, number: int, role: Role, rule: str) -> Candidate:
        start, end = self.tokens.starts[number], self.tokens.ends[number]
        return Candidate(self.labels[number], role, start, end, rule)

    def _announced(self, number: int, announcement: phrases.Announcement) -> Candidate | None:
        """Return the candidate of the announced label ``number``, or None if it is not one."""
        tokens, start, behind = self.tokens, self.tokens.starts[number], self._behind(number)
        rule = self._announced_by(announcement.start, start)
        whole = self._option_at(start)
        if whole is not None and len(whole[0]) > 1:
            return Candidate(whole[1], Role.ANNOUNCED, start, whole[2], rule)
        if not phrases.is_answer(tokens, number, behind, announcement.how):
            return None
        other = phrases.other_label(tokens, behind, self._behind)
        if other is not None and self.labels[other] != self.labels[number]:
            rule = f"{rule}, together with {self.labels[other]}"
            return Candidate(None, Role.ANNOUNCED, start, tokens.ends[other], rule)
        role = _ROLES.get(announcement.how, Role.ANNOUNCED)
        return self._label(number, Role.SUPPOSED if announcement.supposed else role, rule)

    def _announced_by(self, first: int, end: int) -> str:
        words = " ".join(self.text[self.tokens.starts[first] : end].split())
        return f"announced by {words[-60:]!r}"

    def _behind(self, number: int) -> int:
        """Return the first token after the label ``number`` and the text of its option."""
        text = next((text for text, label in self.options if label == self.labels[number]), "")
        end = normalization.match_end(text, self.text, self.tokens.ends[number])
        return number + 1 if end is None else bisect_left(self.tokens.starts, end)

    def _announced_texts(self) -> Iterator[Candidate]:
        """Yield announcements that are followed by the whole text of an option or by a refusal."""
        classes = self.tokens.classes
        words = (number for number in reversed(range(len(classes))) if classes[number] in "NOB")
        for number in islice(words, _WORDS_READ) if self.options else ():
            starts = phrases.announced_at(self.tokens, number)
            for at in starts:
                if (whole := self._option_at(at)) is not None:
                    rule = self._announced_by(number, at)
                    yield Candidate(whole[1], Role.ANNOUNCED, at, whole[2], rule)
                    break
            else:
                if refusals := [at for at in starts if phrases.is_refusal(self.tokens, at)]:
                    at = refusals[0]
                    yield Candidate(None, Role.ANNOUNCED, at, at + 1, "a refusal")

    def _option_at(self, start: int) -> tuple[str, str | None, int] | None:
        """Return text, label and end of the option whose whole text is the clause at ``start``.

        The label is None if two options have this text, or if another option is offered, too.
        """
        length = len(self.options[0][0]) if self.options else 0
        window = self.text[start : start + 2 * length + 80]
        clause, line = (
            normalization.plain_text(window),
            normalization.plain_text(_LINE_END.split(window, 1)[0]),
        )
        for plain, label in self.options:
            ends = line == plain or phrases.clause_ends_at(clause, len(plain))
            if clause.startswith(plain) and ends:
                others = [text for text, other in self.options if other != label]
                rest = clause[len(plain) :]
                several = plain in others or any(phrases.offers_text(rest, o) for o in others)
                end = normalization.match_end(plain, self.text, start) or start + len(plain)
                return plain, None if several else label, end
        return None

    # Verdicts on the options

    def _verdicts(self) -> tuple[list[Candidate], int]:
        """Return the only option called correct, and the end of the last such conclusion."""
        correct: dict[str, Candidate] = {}
        concluded = 0
        for number in self.last:
            kind = phrases.label_verdict(self.tokens, number)
            if kind in ("correct", "concluded"):
                candidate = self._label(number, Role.VERDICT, "called correct")
                correct.setdefault(self.labels[number], candidate)
                concluded = max(concluded, candidate.end * (kind == "concluded"))
        right = [number for number, good in self.rows.items() if good]
        if len(self.rows) > 1 and len({self.labels[number] for number in right}) == 1:
            candidate = self._label(right[-1], Role.VERDICT, "the only row called correct")
            correct.setdefault(self.labels[right[-1]], candidate)
        return (list(correct.values()) if len(correct) == 1 else []), concluded

    @cached_property
    def rows(self) -> dict[int, bool]:
        """Token of a label at the beginning of a row with a verdict → True for "correct"."""
        opening = [n for n in reversed(self.last) if phrases.opens_a_row(self.tokens, n)]
        ends = [*opening[1:], len(self.tokens.classes)]
        rows = zip(opening, ends, strict=True) if opening else ()
        judged = {n: phrases.row_verdict(self.tokens, n, self._behind(n), end) for n, end in rows}
        return {number: good for number, good in judged.items() if good is not None}

    # Loose forms

    @cached_property
    def lines(self) -> list[_Line]:
        """Non-empty lines without code fences; in a long text only those near its ends."""
        starts, size = self.tokens.starts, len(self.text)
        return [
            _Line(match.group(), match.start(), *(bisect_left(starts, at) for at in match.span()))
            for match in _LINE.finditer(self.text)
            if (match.start() < _EDGE or match.end() > size - _EDGE)
            and not _FENCE.fullmatch(match.group())
        ]

    def _lone(self, line: _Line) -> str | None:
        """Return the label that this line consists of, or None."""
        if normalization.is_cut_off(line.text) or not _LONE.fullmatch(
            self.tokens.classes, line.first, line.end
        ):
            return None
        return next(self.labels[n] for n in range(line.first, line.end) if n in self.labels)

    def _opens(self, line: _Line) -> str | None:
        """Return the label at the beginning of this line, or None.

        Small letters do not count: they number the parts of an answer.
        """
        label = self.labels.get(line.first)
        if label is None or not _LABELLED.match(self.text, self.tokens.ends[line.first]):
            return None
        return None if self.text[self.tokens.starts[line.first]].islower() else label

    def _edge_lines(self) -> Iterator[Candidate]:
        """Yield the label that is, or begins, the last line or else the first line.

        Not if other lines have other labels, and not if a list was truncated.
        """
        alone = {n: label for n, line in enumerate(self.lines) if (label := self._lone(line))}
        opened = {n: label for n, line in enumerate(self.lines) if (label := self._opens(line))}
        last = len(self.lines) - 1
        before = [self.order.index(label) for n, label in opened.items() if n < last]
        cut_off = last in alone and self.lines[last].text.endswith(")") and bool(before)
        cut_off = cut_off and before[-1] + 1 == self.order.index(alone[last])
        if len(set(alone.values())) == 1 and len(alone) < 3 and not cut_off:
            for number in {last: "last", 0: "first"}.keys() & alone.keys():
                yield self._line(number, alone[number], Role.BARE, "alone on a line")
        if len(set(opened.values())) != 1 or not {0, last} & opened.keys():
            return
        if len(self.rows) > 1 or not all(self.rows.values()):
            return  # the verdicts decide
        number, label = opened.popitem()
        first = self.lines[number].first
        if phrases.other_label(self.tokens, self._behind(first), self._behind) is not None:
            return
        short = self._behind_short_answer(self.lines[number])
        if short or label != "I" or not any(line.text.startswith("II") for line in self.lines):
            rule = "the only label that a line opens with"
            yield self._line(number, short or label, Role.LABELLED_LINE, rule)

    def _line(self, number: int, label: str, role: Role, rule: str) -> Candidate:
        line = self.lines[number]
        return Candidate(label, role, line.start, line.start + len(line.text), rule)

    def _behind_short_answer(self, line: _Line) -> str | None:
        """Return the option that alone follows "A:", by its label or its text, or None."""
        if not _SHORT_ANSWER.match(line.text):
            return None
        at = self.tokens.ends[line.first + 1]
        rest = _Line(self.text[at : line.start + len(line.text)], at, line.first + 2, line.end)
        same = self._options_of(rest.text)
        return same[0] if len(same) == 1 else self._lone(rest)

    def _option_text(self) -> Iterator[Candidate]:
        """Yield the option whose whole text is the first or last line, or the end of the reply."""
        lines = {
            number: label
            for number, line in enumerate(self.lines)
            if not normalization.is_cut_off(line.text) and (label := self._options_of(line.text))
        }
        if lines:
            (number, labels), last = lines.popitem(), len(self.lines) - 1
            same = all(labels == other for other in lines.values()) and len(labels) == 1
            if same and {0, last} & {number, *lines}:
                rule = "the only option that is a line"
                yield self._line(number, labels[0], Role.OPTION_TEXT, rule)
        elif phrases.COMPLETE.search(self.text[-20:]):  # otherwise the reply is truncated
            sentence = normalization.last_sentence(self.text[-_EDGE:])
            ends = [text for text, _ in self.options if sentence.endswith(text)]
            labels = self._options_of(ends[0]) if ends else []
            if len(labels) == 1 and phrases.leads_up_to(sentence[: -len(ends[0])]):
                start = max(0, self.text.casefold().rfind(ends[0]))
                rule = "the last sentence ends in the option's text"
                yield Candidate(labels[0], Role.OPTION_TEXT, start, start + len(ends[0]), rule)
