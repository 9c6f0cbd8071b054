"""Reading the chosen option out of generated text.

Only what is unmistakable counts: an explicit statement ("the answer is (B)", a box, "B is the
answer"), a label that has the first or the last line to itself, the whole text of an option. Two
labels offered at once, a denial, a question are no statement. Nothing is guessed.

The text is searched once for labels and once for words that announce an answer, both from its
end; of either only a bounded number is looked at, each through windows of bounded width. So the
time is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import phrases
from pytest_llmeval.scorers import wording
from pytest_llmeval.scorers.languages import LETTERS
from pytest_llmeval.scorers.reply import from_the_end
from pytest_llmeval.scorers.reply import own_answer
from pytest_llmeval.scorers.reply import verdict
from pytest_llmeval.scorers.reply import what_is_wrong

_LABELS_READ = 250  # labels looked at, from the last
_WORDS_READ = 30  # announcements looked at, from the last
_BEFORE = 160  # characters before a label that may say what it is
_AFTER = 160
_EDGE = 2000  # characters at either end in which lines are looked at


def choice(item: Item, response: Response) -> Score:
    """The option that the generated text names; no readable option is ``unparsed``."""
    fault = what_is_wrong(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    answer = extract_choice(response.text or "", item.options)
    return verdict(answer, answer == item.gold_label)


def extract_choice(text: str, options: Sequence[str], *, labels: str | None = None) -> str | None:
    """The label of the option that ``text`` settles on, or None.

    ``labels`` are the options' letters, by default A, B, C…; the letters that other scripts use
    instead are read as these. Closed reasoning blocks are dropped, an open one means that no
    answer was reached; a next question that the model goes on to ask is cut off. Then, first hit
    wins: the last explicit statement, a label alone on the first or last line, the only labelled
    line, the only option called correct, the text of one option, what would be the answer if
    something else were the case. Never raises.
    """
    labels = (LABELS if labels is None else labels)[: len(options)]
    reply = own_answer(text)
    if not reply or not labels:
        return None
    reader = _Reader(reply, tuple(options[: len(labels)]), labels)
    whole = reader.whole_reply()
    if whole is not None:
        return whole
    found = reader.stated()
    if found is not None:
        return found.label
    return (
        reader.alone_on_a_line()
        or reader.only_concluded()
        or reader.only_labelled_line()
        or reader.only_correct()
        or reader.option_text()
        or reader.supposed
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A statement and where it stands; ``label`` None where it names several options or none.

    ``loose``: said by the way ("which is B"), so that another option concluded to be correct counts more.
    """

    label: str | None
    start: int
    loose: bool = False


class _Reader:
    """One reply, read with the labels and options of one item."""

    def __init__(self, text: str, options: tuple[str, ...], labels: str) -> None:
        self.text = text
        self.labels = labels
        self.pattern, self.meaning = _grammar(labels)
        # Longest first, so that "iron" is not found in "iron oxide".
        self.options = sorted(
            (
                (plain, label)
                for label, option in zip(labels, options, strict=True)
                if (plain := wording.plain(option)) and plain.upper() not in tuple(labels)
            ),
            key=lambda pair: -len(pair[0]),
        )
        self.weak: set[str] = set()
        self.concluded = False
        #: What would be the answer if something else were the case.
        self.supposed: str | None = None

    def whole_reply(self) -> str | None:
        """The only option whose whole text is all of the reply."""
        if not self.options or len(self.text) > 2 * len(self.options[0][0]) + 80:
            return None
        return self._called_by_text(self.text)

    def _called_by_text(self, text: str) -> str | None:
        """The only option with this text."""
        said = wording.plain(text)
        same = [label for plain, label in self.options if plain == said]
        return same[0] if len(same) == 1 else None

    # Explicit statements

    def stated(self) -> _Found | None:
        """The last explicit statement. A letter within an option's announced text is none."""
        label = self._stated_label()
        text = self._stated_text(after=-1 if label is None else label.start)
        return text or label

    def _stated_label(self) -> _Found | None:
        for match in islice(from_the_end(self.pattern, self.text), _LABELS_READ):
            found = self._judge(match)
            if found is None or (found.loose and self.concluded):
                continue
            if not phrases.is_supposed(self.text[max(0, match.start() - _BEFORE) : match.start()]):
                return found
            self.supposed = self.supposed or found.label
        return None

    def _judge(self, match: re.Match[str]) -> _Found | None:
        """What is said of the label at ``match``: a statement, or None."""
        start, end = match.span()
        before = self.text[max(0, start - _BEFORE) : start]
        after = self.text[end : end + _AFTER]
        label = self.meaning[match.group()]
        if phrases.in_a_formula(after):
            return None
        how = phrases.announced(before, after)
        if how is None:
            return self._called(label, start, before, after)
        if phrases.denied(after) or (how != "colon" and phrases.asked(after)):
            return None
        whole = self._option_at(start)
        if whole is not None and len(whole[0]) > 1:
            return _Found(whole[1], start)
        own = self._own_text(label, after)
        if own is None and phrases.is_a_word(match.group(), before, after, how):
            return None
        if how == "loose" and own is None and not phrases.ends_a_clause(after):
            return self._called(label, start, before, after)
        rest = after if own is None else after[own:]
        other = self.pattern.search(rest, 0, 40)
        if (
            other is not None
            and self.meaning[other.group()] != label
            and other.group() not in "ai"
            and phrases.offers_another(rest[: other.start()], other.group(), rest[other.end() :])
        ):
            return _Found(None, start)
        return _Found(label, start, how == "loose")

    def _called(self, label: str, start: int, before: str, after: str) -> _Found | None:
        """What is said behind the label: that it is the answer, or at least that it is correct."""
        if phrases.called_the_answer(before, after):
            return _Found(label, start)
        if phrases.called_correct(before, after):
            self.weak.add(label)
            self.concluded = self.concluded or phrases.concluded(before)
        return None

    def _own_text(self, label: str, after: str) -> int | None:
        """Where the label's own option text ends in ``after``, if it follows the label."""
        said, places = wording.plain_with_places(after)
        opening = len(said) - len(said.lstrip(" .:,-–—"))
        for plain, owner in self.options:
            if owner == label and said.startswith(plain[:_AFTER], opening):
                last = opening + len(plain) - 1
                return places[last] + 1 if last < len(places) else len(after)
        return None

    def _stated_text(self, after: int) -> _Found | None:
        """The last announcement that the whole text of an option follows, which ends after."""
        for match in islice(from_the_end(phrases.ANNOUNCEMENT, self.text), _WORDS_READ):
            starts = phrases.announced_at(self.text, match)
            found = [(at, whole) for at in starts if (whole := self._option_at(at)) is not None]
            if match.start() <= after and not any(at + len(w[0]) > after for at, w in found):
                break
            if found and found[0][1][1] is not None:
                return _Found(found[0][1][1], match.start())
            if starts and not found and phrases.REFUSAL.match(self.text, starts[-1]):
                return _Found(None, match.start())
        return None

    def _option_at(self, start: int) -> tuple[str, str | None] | None:
        """The option whose whole text a clause starting here is, with its label.

        The label is None where two options have this text, or where another one is offered too.
        """
        if not self.options:
            return None
        length = len(self.options[0][0])
        window = self.text[start : start + 2 * length + 80]
        said, line = wording.plain(window), wording.plain(phrases.first_line(window))
        for plain, label in self.options:
            ends = line == plain or phrases.clause_ends_at(said, len(plain))
            if said.startswith(plain) and ends:
                if any(text == plain and other != label for text, other in self.options):
                    return plain, None
                rest = said[len(plain) :]
                for text, other in self.options:
                    if other != label and phrases.offers_text(rest, text):
                        return plain, None
                return plain, label
        return None

    # Loose forms

    def alone_on_a_line(self) -> str | None:
        """The label that the last line, or else the first, consists of.

        Not where several lines do, and not where a list was cut off behind its next label.
        """
        alone = [label for line in self._edge_lines() if (label := self._lone(line)) is not None]
        if len(set(alone)) != 1 or len(alone) > 2:
            return None
        lines = self._edge_lines()
        last = self._lone(lines[-1])
        if last is None:
            return self._lone(lines[0])
        listed = [label for _, label in self._marked(lines[:-1])]
        place = self.labels.index(last)
        if listed and place and listed[-1] == self.labels[place - 1] and lines[-1].endswith(")"):
            return None
        return last

    def _lone(self, line: str) -> str | None:
        if len(line) > 60 or wording.is_cut_off(line) or phrases.NEGATED_LETTER.search(line):
            return None
        bare = wording.bare(line)
        return self.meaning.get(bare) if len(bare) == 1 else None

    def only_labelled_line(self) -> str | None:
        """The label that the first or last line opens with, if no line opens with another."""
        lines = self._edge_lines()
        marked = self._marked(lines)
        if len({label for _, label in marked}) != 1:
            return None
        at_edge = marked[0][0] == 0 or marked[-1][0] == len(lines) - 1
        if at_edge and (behind := self._behind_short_answer(lines[marked[-1][0]])) is not None:
            return behind
        if marked[0][1] == "I" and any(line.lstrip(" *(").startswith("II") for line in lines):
            return None  # a list with Roman numbers
        return marked[0][1] if at_edge else None

    def _behind_short_answer(self, line: str) -> str | None:
        """The option that is all that stands behind "A:", by its label or its text."""
        short = phrases.SHORT_ANSWER.match(line)
        if short is None:
            return None
        rest = line[short.end() :]
        return self._called_by_text(rest) or self._lone(rest)

    def _marked(self, lines: Sequence[str]) -> list[tuple[int, str]]:
        """The number and label of every line that opens with a label and says more.

        Small letters number the parts of an answer.
        """
        return [
            (number, self.meaning[match.group(1)])
            for number, line in enumerate(lines)
            if (match := phrases.LABELLED_LINE.match(line))
            and match.group(1) in self.meaning
            and not match.group(1).islower()
        ]

    def only_concluded(self) -> str | None:
        """The only option called correct, where that is a conclusion: "hence, option B is correct"."""
        return self.only_correct() if self.concluded else None

    def only_correct(self) -> str | None:
        """The only option of which it is said that it is correct."""
        return next(iter(self.weak)) if len(self.weak) == 1 else None

    def option_text(self) -> str | None:
        """The option whose whole text is the reply, a line at its edge, or what it ends in."""
        kept = self._edge_lines()
        lines = [wording.plain(line) for line in kept]
        found = [
            (number, label)
            for number, line in enumerate(lines)
            for plain, label in self.options
            if plain == line and not wording.is_cut_off(kept[number])
        ]
        if found:
            at_edge = found[-1][0] == len(lines) - 1 or found[0][0] == 0
            return found[0][1] if at_edge and len({label for _, label in found}) == 1 else None
        if not phrases.COMPLETE.search(self.text[-20:]):
            return None  # cut off: who knows what it was about to say
        sentence = wording.last_sentence(self.text[-_EDGE:])
        for plain, label in self.options:
            if not sentence.endswith(plain):
                continue
            before = sentence[: -len(plain)]
            # "False" and "not allowed" may be what is offered.
            if phrases.NEGATED.search(before) or phrases.HELD_BY_OTHERS.search(before):
                continue
            if phrases.is_told_of(before):
                same = sum(text == plain for text, _ in self.options)
                return label if same == 1 else None
        return None

    def _edge_lines(self) -> list[str]:
        """The lines that are not empty, of a long text those near its ends.

        The marks of a code block are no lines of their own.
        """
        text = self.text
        if len(text) > 2 * _EDGE:
            text = text[:_EDGE] + "\n" + text[-_EDGE:]
        lines = text.split("\n")
        return [line for line in lines if line.strip() and not phrases.FENCE.fullmatch(line)]


@lru_cache(maxsize=64)
def _grammar(labels: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """The pattern of a label that stands by itself, and which label each of its forms is."""
    meaning = {label: label for label in labels}
    for letters in LETTERS.values():
        for letter, label in zip(letters, labels, strict=False):
            if letter != " ":
                meaning.setdefault(letter, label)
    small = {label.lower(): label for label in labels if label.lower() not in meaning}
    meaning.update(small)
    large = {label.upper(): label for label in labels if label.upper() not in meaning}
    meaning.update(large)
    return phrases.label_pattern(labels + "".join(large), "".join(small), meaning), meaning
