"""Questions as token ids, and the shape of the work on them. Pure Python: no torch here.

A question's rows (context + choice, one row a choice) share their beginning. The shared part is
the trunk, what differs are branches; the last token of a row is scored but never read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic
from typing import NamedTuple
from typing import Protocol
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# Forming one more group costs about as much as computing this many tokens.
_GROUP_COST = 64
# Deeper nesting of shared beginnings than this is not looked for.
_MAX_DEPTH = 50
# A prefix must save this many tokens to be worth a forward of its own.
_WORTHWHILE = 64
# Nor is it worth asking questions together that share less.
_WORTHWHILE_TOGETHER = 8


class Beginning(Protocol):
    """What may share its beginning with others.

    ``index``: place of the request among those asked together. ``shareable``: the tokens that a
    prefix may take over. ``trunk_length``: how many tokens are read before anything branches.
    """

    @property
    def index(self) -> int: ...

    @property
    def shareable(self) -> tuple[int, ...]: ...

    @property
    def trunk_length(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """A prompt that is to be continued, as token ids.

    ``limit``: the most tokens to generate. ``opened``: the prompt ends within a thought.
    """

    index: int
    tokens: tuple[int, ...]
    limit: int
    opened: bool = False
    dropped_shots: int = 0

    @property
    def shareable(self) -> tuple[int, ...]:
        """All tokens but the last, off which the first generated one is read."""
        return self.tokens[:-1]

    @property
    def trunk_length(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Question:
    """A request as token ids.

    ``index``: place of the request among those asked together. ``rows``: context and choice as
    the model reads them. ``starts``: where in each row the choice begins, at least 1.
    ``tree``: the tokens to compute. ``prompt_tokens``: length of the context,
    of the longest where choices have contexts of their own. ``encoded_apart``: choices whose text
    would merge with the end of the context. ``parts``: the questions that this one
    asks together, in the order of their rows.
    """

    index: int
    rows: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    tree: Tree
    prompt_tokens: int
    dropped_shots: int = 0
    encoded_apart: int = 0
    parts: tuple[Question, ...] = ()

    @property
    def length(self) -> int:
        """TokenUsage of the longest row that the model reads; the last one is only scored."""
        return max(map(len, self.rows)) - 1

    @property
    def full_size(self) -> int:
        """TokenUsage to compute where every distinct row is computed by itself, padded."""
        ends_on_trunk = None in self.tree.taken
        return (len(self.tree.branches) + ends_on_trunk) * self.length

    @property
    def shareable(self) -> tuple[int, ...]:
        """The tokens that a prefix may take over: before the first position that is needed."""
        return self.tree.trunk[: min(self.starts) - 1]

    @property
    def trunk_length(self) -> int:
        """TokenUsage that all rows read."""
        return len(self.tree.trunk)


@dataclass(frozen=True, slots=True)
class Tree:
    """What rows read: ``trunk``, then one of ``branches`` (distinct, none empty)."""

    trunk: tuple[int, ...]
    branches: tuple[tuple[int, ...], ...]
    # Of each row, its branch, or None where it does not go beyond the trunk.
    taken: tuple[int | None, ...]

    @property
    def size(self) -> int:
        """TokenUsage to compute where nothing is computed yet."""
        return len(self.trunk) + sum(map(len, self.branches))


def tree_of(rows: Sequence[tuple[int, ...]]) -> Tree:
    """The tree of what the rows read."""
    read = [row[:-1] for row in rows]
    common = common_length(read)
    branches: dict[tuple[int, ...], int] = {}
    taken = [
        branches.setdefault(tokens[common:], len(branches)) if len(tokens) > common else None
        for tokens in read
    ]
    return Tree(read[0][:common], tuple(branches), tuple(taken))


def joined(questions: Sequence[Question], names: Sequence[str]) -> list[Question]:
    """Neighbours of one name as one question, where that computes fewer tokens.

    An item whose options are shown in several orders has the same text up to its options: one
    trunk, and a branch for every order. ``names`` are by the questions' index.
    """
    found: list[Question] = []
    for _, alike in itertools.groupby(questions, key=lambda question: names[question.index]):
        parts = tuple(alike)
        found += _joined(parts) if len(parts) > 1 else parts
    return found


def _joined(parts: tuple[Question, ...]) -> tuple[Question, ...]:
    rows = tuple(row for part in parts for row in part.rows)
    starts = tuple(start for part in parts for start in part.starts)
    tree = tree_of(rows)
    # A prefix that the whole call shares is computed once in any case: what counts is what comes
    # after the beginning that they have in common.
    common = len(tree.trunk)
    apart = sum(part.tree.size - common for part in parts)
    if common < _WORTHWHILE_TOGETHER or tree.size - common > apart:
        return parts
    return (Question(parts[0].index, rows, starts, tree, parts[0].prompt_tokens, parts=parts),)


def common_length(rows: Sequence[tuple[int, ...]]) -> int:
    """How many leading tokens all rows share."""
    # The smallest and the largest in lexicographic order differ first.
    first, last = min(rows), max(rows)
    if first == last[: len(first)]:
        return len(first)
    for position, (a, b) in enumerate(zip(first, last, strict=False)):
        if a != b:
            return position
    return min(len(first), len(last))


class Scored(NamedTuple):
    """One token to score: predicted at ``node`` of the segment, for choice ``choice``."""

    node: int
    token: int
    choice: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A question after a prefix of ``skip`` tokens, laid out flat: trunk, then the branches.

    ``positions`` count from the beginning of the row. ``branch_of``: per token, 0 on the trunk,
    else 1 + its branch; a token sees earlier tokens of the trunk and of its own branch.
    """

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    branch_of: tuple[int, ...]
    scored: tuple[Scored, ...]
    trunk_length: int

    @property
    def is_chain(self) -> bool:
        """Whether there is nothing but a trunk (plain causal attention)."""
        return self.trunk_length == len(self.tokens)


def segment_of(question: Question, skip: int) -> Segment:
    """Lay out a question whose first ``skip`` tokens are computed already."""
    tree = question.tree
    tokens = list(tree.trunk[skip:])
    positions = list(range(skip, len(tree.trunk)))
    branch_of = [0] * len(tokens)
    offsets = []
    for number, branch in enumerate(tree.branches, start=1):
        offsets.append(len(tokens))
        tokens += branch
        positions += range(len(tree.trunk), len(tree.trunk) + len(branch))
        branch_of += [number] * len(branch)
    scored = []
    for choice, (row, start) in enumerate(zip(question.rows, question.starts, strict=True)):
        for place in range(start, len(row)):
            # The token at a place is predicted by what was read up to the place before it.
            reader = place - 1
            if reader < len(tree.trunk):
                node = reader - skip
            else:
                branch_number = tree.taken[choice]
                assert branch_number is not None  # the row reads beyond the trunk
                node = offsets[branch_number] + reader - len(tree.trunk)
            scored.append(Scored(node, row[place], choice))
    return Segment(
        tuple(tokens),
        tuple(positions),
        tuple(branch_of),
        tuple(scored),
        len(tree.trunk) - skip,
    )


S = TypeVar("S")
T = TypeVar("T", bound=Beginning)


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Questions, or openings, that share their first ``shared`` tokens."""

    shared: int
    questions: tuple[T, ...]

    def prefix(self, live: int, *, alone: bool) -> tuple[int, ...]:
        """The tokens to have read before the group's questions are computed.

        ``live``: how many of the first question's tokens are known already. ``alone``: nothing
        else is asked at the same time.
        """
        first = self.questions[0].shareable
        if len(self.questions) > 1:
            saved = self.shared * (len(self.questions) - 1)
            return first[: self.shared] if self.shared <= live or saved > _WORTHWHILE else ()
        if 2 * live >= len(first):
            return first[:live]
        # Asked one at a time, the next question is likely to begin as this one does.
        return first if alone else ()


def group(questions: Sequence[T]) -> list[Group[T]]:
    """Questions by shared beginning, so that the tokens to compute are few.

    Groups are ordered by their earliest question, and so are the questions in a group. Sharing
    is by tokens, never by text: tokens may merge where two texts meet.
    """
    ordered = sorted(questions, key=lambda question: question.shareable)
    shared = _neighbours([question.shareable for question in ordered])
    lengths = np.array([question.trunk_length for question in ordered])
    found = _divide(shared, lengths, 0, len(ordered), 0)
    groups = [
        Group(
            part.shared,
            tuple(sorted((ordered[i] for i in part.members), key=lambda q: q.index)),
        )
        for part in found.parts
    ]
    return sorted(groups, key=lambda part: part.questions[0].index)


class _Part(NamedTuple):
    shared: int
    members: tuple[int, ...]


class _Division(NamedTuple):
    cost: int
    parts: list[_Part]


def _neighbours(rows: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Of each row, how many leading tokens it shares with the row before (0 for the first)."""
    arrays = [np.array(row, dtype=np.int64) for row in rows]
    shared = np.zeros(len(rows), dtype=np.int64)
    for i in range(1, len(rows)):
        length = min(len(arrays[i - 1]), len(arrays[i]))
        differ = arrays[i - 1][:length] != arrays[i][:length]
        shared[i] = int(differ.argmax()) if differ.any() else length
    return shared


def _divide(
    shared: NDArray[np.int64], lengths: NDArray[np.int64], begin: int, end: int, depth: int
) -> _Division:
    """The cheapest way found to group the sorted rows ``begin…end``.

    All share what the least similar neighbours do. Rows that share more are a group of their
    own where computing their longer prefix once is worth more than staying with the others.
    """
    members = tuple(range(begin, end))
    if end - begin == 1:
        return _Division(int(lengths[begin]), [_Part(0, members)])
    common = int(shared[begin + 1 : end].min())
    cuts = [begin, *(begin + 1 + np.flatnonzero(shared[begin + 1 : end] == common)).tolist(), end]
    cost = 0
    parts: list[_Part] = []
    left: list[int] = []
    for low, high in itertools.pairwise(cuts):
        together = int(lengths[low:high].sum()) - common * (high - low)
        if high - low > 1 and depth < _MAX_DEPTH:
            apart = _divide(shared, lengths, low, high, depth + 1)
            if apart.cost + _GROUP_COST < together:
                cost += apart.cost + _GROUP_COST
                parts += apart.parts
                continue
        cost += together
        left += range(low, high)
    if len(left) == 1:
        parts.append(_Part(0, tuple(left)))
        cost += common
    elif left:
        parts.append(_Part(common, tuple(left)))
        cost += common
    return _Division(cost, parts)


def batches(
    questions: Iterable[S],
    size: Callable[[S], int],
    budget: Callable[[], int],
    *,
    padded: bool,
) -> Iterator[list[S]]:
    """Cut questions into batches of at most ``budget()`` tokens, or of one question.

    ``padded``: every question of a batch costs as much as its longest; they are sorted by
    length then. Without padding the order is kept, so that early requests are answered early.
    The budget is asked before every batch is closed: it may shrink on the way.
    """
    if padded:
        questions = sorted(questions, key=size)
    batch: list[S] = []
    tokens = 0
    for question in questions:
        own = size(question)
        total = own * (len(batch) + 1) if padded else tokens + own
        if batch and total > budget():
            yield batch
            batch, tokens = [], 0
        batch.append(question)
        tokens += own
    if batch:
        yield batch
