"""Reading the chosen option out of generated text.

Only what is unmistakable counts: an explicit statement ("the answer is (B)", a box, "B is the
answer"), a verdict on the options, a label that has the first or the last line to itself, the whole
text of an option. Two labels offered at once, a denial, a question are no statement. Nothing is
guessed.

Each kind of statement has a finder, which yields candidates; ``_RANKS`` puts them in order. The
reply is split into tokens once; labels and words that announce an answer are looked at from its end,
of either only a bounded number. So the time is linear in the text, whatever the text is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import phrases
from pytest_llmeval.scorers import wording
from pytest_llmeval.scorers.candidates import Candidate
from pytest_llmeval.scorers.candidates import Extraction
from pytest_llmeval.scorers.candidates import Role
from pytest_llmeval.scorers.reply import own_answer
from pytest_llmeval.scorers.reply import verdict
from pytest_llmeval.scorers.reply import what_is_wrong
from pytest_llmeval.scorers.tokens import forms_of
from pytest_llmeval.scorers.tokens import lex

_LABELS_READ = 250  # labels looked at, from the last
_WORDS_READ = 30  # announcements looked at, from the last
_AFTER = 160  # characters behind a label in which the text of its option is looked for
_EDGE = 2000  # characters at either end in which lines are looked at

_CHINESE = "零一二三四五六七八九十"
_RANKS = {
    Role.WHOLE_REPLY: 0,
    Role.BOXED: 1,
    Role.ANNOUNCED: 1,
    Role.CONCLUSION: 1,
    Role.BARE: 2,
    Role.VERDICT: 3,
    Role.LABELLED_LINE: 4,
    Role.OPTION_TEXT: 5,
    Role.SUPPOSED: 6,
}
"""Role → rank, the best 0. Of equal rank the last candidate in the reply is the better one."""


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
    instead are read as these. Reasoning is dropped, and where it was cut off no answer was reached;
    a next question that the model goes on to ask is cut off. The answer is that of the candidate
    with the best rank (``explain_choice``). Never raises.
    """
    return explain_choice(text, options, labels=labels).answer


def explain_choice(
    text: str, options: Sequence[str], *, labels: str | None = None
) -> Extraction:
    """The candidates for the answer in ``text``, the best first; arguments as ``extract_choice``."""
    labels = (LABELS if labels is None else labels)[: len(options)]
    shown = tuple(options[: len(labels)])
    reply = own_answer(text, lambda part: bool(_ranked(part, shown, labels)))
    return Extraction(reply or "", _ranked(reply or "", shown, labels))


def _ranked(reply: str, options: tuple[str, ...], labels: str) -> tuple[Candidate, ...]:
    if not reply or not labels:
        return ()
    found = _Reader(reply, options, labels).candidates()
    return tuple(sorted(found, key=lambda candidate: (_RANKS[candidate.role], -candidate.end)))


class _Reader:
    """One reply, read with the labels and options of one item."""

    def __init__(self, text: str, options: tuple[str, ...], labels: str) -> None:
        self.text = text
        self.labels = labels
        said = [wording.plain(option) for option in options]
        # Longest first, so that "iron" is not found in "iron oxide".
        self.options = sorted(
            (
                (plain, label)
                for label, plain in zip(labels, said, strict=True)
                if plain and plain.upper() not in tuple(labels)
            ),
            key=lambda pair: -len(pair[0]),
        )
        self.meaning = forms_of(labels)
        # Not where it may be the text of an option.
        numbers = {
            form: label
            for number, label in enumerate(labels, start=1)
            for form in (str(number), _CHINESE[number : number + 1])
            if form not in said
        }
        self.tokens = lex(text, labels, numbers=numbers)

    def candidates(self) -> list[Candidate]:
        """What may be the answer; nothing else where the reply is just the text of an option."""
        whole = self._whole_reply()
        if whole is not None:
            return [whole]
        texts = list(self._announced_texts())
        stated = [c for c in self._stated_labels() if not any(_within(c, text) for text in texts)]
        verdicts, concluded = self._verdicts()
        return [
            *texts,
            *(c for c in stated if c.role is not Role.CONCLUSION or c.end > concluded),
            *verdicts,
            *self._alone_on_a_line(),
            *self._labelled_line(),
            *self._option_text(),
        ]

    def _whole_reply(self) -> Candidate | None:
        if not self.options or len(self.text) > 2 * len(self.options[0][0]) + 80:
            return None
        label = self._called_by_text(self.text)
        if label is None:
            return None
        rule = "the reply is the text of the option"
        return Candidate(label, Role.WHOLE_REPLY, 0, len(self.text), rule)

    def _called_by_text(self, text: str) -> str | None:
        """The only option with this text."""
        said = wording.plain(text)
        same = [label for plain, label in self.options if plain == said]
        return same[0] if len(same) == 1 else None

    # Explicit statements

    def _stated_labels(self) -> Iterator[Candidate]:
        """Labels that are announced or called the answer."""
        for number in islice(reversed(self.tokens.labels), _LABELS_READ):
            found = phrases.announcement(self.tokens, number)
            candidate = None if found is None else self._announced(number, found)
            if candidate is not None:
                yield candidate
            elif phrases.called(self.tokens, number) == "the answer":
                yield self._label(number, Role.ANNOUNCED, "called the answer")

    def _label(self, number: int, role: Role, rule: str) -> Candidate:
        start, end = self.tokens.starts[number], self.tokens.ends[number]
        return Candidate(self.tokens.labels[number], role, start, end, rule)

    def _announced(self, number: int, found: phrases.Announcement) -> Candidate | None:
        """The statement that the announced label ``number`` makes, if it makes any."""
        tokens, how = self.tokens, found.how
        label, start, end = tokens.labels[number], tokens.starts[number], tokens.ends[number]
        after = self.text[end : end + _AFTER]
        if phrases.in_a_formula(after) or (how == "boxed" and not phrases.closes_box(after)):
            return None
        behind = self._behind(number)
        own = behind > number + 1
        if (not own and phrases.denied(tokens, behind)) or (how != "colon" and phrases.asked(tokens, behind)):
            return None
        rule = f"announced by {self._quote(found.start, start)}"
        whole = self._option_at(start)
        if whole is not None and len(whole[0]) > 1:
            return Candidate(whole[1], Role.ANNOUNCED, start, whole[2], rule)
        if not own and (
            phrases.is_a_word(tokens, number, how)
            or (how in ("loose", "last") and not phrases.ends_a_clause(tokens, behind))
        ):
            return None
        other = phrases.other_label(tokens, behind, self._behind)
        if other is not None and tokens.labels[other] != label:
            rule = f"{rule}, beside {tokens.labels[other]}"
            return Candidate(None, Role.ANNOUNCED, start, tokens.ends[other], rule)
        role = _ROLES.get(how, Role.ANNOUNCED)
        return self._label(number, Role.SUPPOSED if found.supposed else role, rule)

    def _quote(self, first: int, end: int) -> str:
        said = self.text[self.tokens.starts[first] : end]
        return repr(" ".join(said.split())[-60:])

    def _own_text(self, label: str, after: str) -> int | None:
        """Where the label's own option text ends in ``after``, if it follows the label."""
        said, places = wording.plain_with_places(after)
        opening = len(said) - len(said.lstrip(" .:,-–—"))
        for plain, owner in self.options:
            if owner == label and said.startswith(plain[:_AFTER], opening):
                last = opening + len(plain) - 1
                return places[last] + 1 if last < len(places) else len(after)
        return None

    def _announced_texts(self) -> Iterator[Candidate]:
        """Announcements that the whole text of an option follows, or a refusal."""
        words = (n for n in reversed(range(len(self.tokens.classes))) if self.tokens.classes[n] in "NOB")
        for number in islice(words, _WORDS_READ) if self.options else ():
            starts = phrases.announced_at(self.tokens, number)
            found = [(at, whole) for at in starts if (whole := self._option_at(at)) is not None]
            rule = f"announced by {self._quote(number, starts[-1] if starts else 0)}"
            for at, (_, label, end) in found[:1]:
                yield Candidate(label, Role.ANNOUNCED, at, end, rule)
            if not found and any(phrases.REFUSAL.match(self.text, at) for at in starts):
                yield Candidate(None, Role.ANNOUNCED, starts[-1], starts[-1] + 1, "refused")

    def _option_at(self, start: int) -> tuple[str, str | None, int] | None:
        """The option whose whole text a clause starting here is, its label, and where it ends.

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
                others = [text for text, other in self.options if other != label]
                rest = said[len(plain) :]
                several = plain in others or any(phrases.offers_text(rest, o) for o in others)
                return plain, None if several else label, start + wording.end_of(plain, window)
        return None

    # Verdicts on the options

    def _verdicts(self) -> tuple[list[Candidate], int]:
        """The only option called correct; where the last conclusion of that kind ends."""
        correct: dict[str, Candidate] = {}
        concluded = 0
        for number in islice(reversed(self.tokens.labels), _LABELS_READ):
            if phrases.called(self.tokens, number) == "correct":
                candidate = self._label(number, Role.VERDICT, "called correct")
                correct.setdefault(self.tokens.labels[number], candidate)
                if phrases.concluded(self.tokens, number):
                    concluded = max(concluded, candidate.end)
        right = [number for number, good in self.rows.items() if good]
        if len(self.rows) > 1 and len({self.tokens.labels[number] for number in right}) == 1:
            candidate = self._label(right[-1], Role.VERDICT, "the only row called correct")
            correct.setdefault(self.tokens.labels[right[-1]], candidate)
        return (list(correct.values()) if len(correct) == 1 else []), concluded

    @cached_property
    def rows(self) -> dict[int, bool]:
        """The labels (as tokens) that open a row of a list or table with a verdict, and that."""
        labels = list(self.tokens.labels)[-_LABELS_READ:]
        opening = [number for number in labels if phrases.opens_a_row(self.tokens, number)]
        ends = [*opening[1:], len(self.tokens.classes)]
        judged = {
            number: phrases.judged(self.tokens, number, self._behind(number), end)
            for number, end in zip(opening, ends, strict=False)
        }
        return {number: good for number, good in judged.items() if good is not None}

    def _behind(self, number: int) -> int:
        """The first token behind the label ``number`` and the text of its option."""
        end = self.tokens.ends[number]
        own = self._own_text(self.tokens.labels[number], self.text[end : end + _AFTER])
        return number + 1 if own is None else bisect_left(self.tokens.starts, end + own)

    # Loose forms

    def _alone_on_a_line(self) -> Iterator[Candidate]:
        """The label that the last line, or else the first, consists of.

        Not where several lines do, and not where a list was cut off behind its next label.
        """
        lines = self._edge_lines()
        alone = [label for line in lines if (label := self._lone(line)) is not None]
        if len(set(alone)) != 1 or len(alone) > 2:
            return
        last = self._lone(lines[-1])
        if last is None:
            if self._lone(lines[0]):
                yield Candidate(alone[0], Role.BARE, 0, 1, "alone on the first line")
            return
        listed = [label for _, label in self._marked(lines[:-1])]
        place = self.labels.index(last)
        if listed and place and listed[-1] == self.labels[place - 1] and lines[-1].endswith(")"):
            return
        end = len(self.text)
        yield Candidate(last, Role.BARE, end - 1, end, "alone on the last line")

    def _lone(self, line: str) -> str | None:
        if len(line) > 60 or wording.is_cut_off(line) or phrases.NEGATED_LETTER.search(line):
            return None
        bare = wording.bare(line)
        return self.meaning.get(bare) if len(bare) == 1 else None

    def _labelled_line(self) -> Iterator[Candidate]:
        """The label that the first or last line opens with, if no line opens with another."""
        lines = self._edge_lines()
        marked = self._marked(lines)
        if len({label for _, label in marked}) != 1:
            return
        if marked[0][0] != 0 and marked[-1][0] != len(lines) - 1:
            return
        label = marked[0][1]
        if len(self.rows) > 1 or not all(self.rows.values()):
            return  # the verdicts decide
        behind = self._behind_short_answer(lines[marked[-1][0]])
        if behind is None and label == "I" and any(l.lstrip(" *(").startswith("II") for l in lines):
            return  # a list with Roman numbers
        yield Candidate(behind or label, Role.LABELLED_LINE, 0, 1, "the only label a line opens with")

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

    def _option_text(self) -> Iterator[Candidate]:
        """The option whose whole text is a line at the reply's edge, or what the reply ends in."""
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
            if at_edge and len({label for _, label in found}) == 1:
                yield Candidate(found[0][1], Role.OPTION_TEXT, 0, 1, "a line is the option's text")
            return
        if not phrases.COMPLETE.search(self.text[-20:]):
            return  # cut off: who knows what it was about to say
        sentence = wording.last_sentence(self.text[-_EDGE:])
        for plain, label in self.options:
            if sentence.endswith(plain) and phrases.leads_up_to(sentence[: -len(plain)]) :
                if sum(text == plain for text, _ in self.options) == 1:
                    end = len(self.text)
                    yield Candidate(label, Role.OPTION_TEXT, end - 1, end, "the last sentence is that")
                return

    def _edge_lines(self) -> list[str]:
        """The lines that are not empty, of a long text those near its ends.

        The marks of a code block are no lines of their own.
        """
        text = self.text
        if len(text) > 2 * _EDGE:
            text = text[:_EDGE] + "\n" + text[-_EDGE:]
        lines = text.split("\n")
        return [line for line in lines if line.strip() and not phrases.FENCE.fullmatch(line)]


_ROLES = {"boxed": Role.BOXED, "loose": Role.CONCLUSION}


def _within(candidate: Candidate, text: Candidate) -> bool:
    return text.start <= candidate.start < text.end
