"""Requests as token ids, grouped by shared prefixes and split into batches, without torch.

The rows of a question (context + choice, one row per choice) start with the same tokens. The shared
part is the trunk, the rest are branches. The last token of a row is scored but never read.
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

# Overhead of an additional group, as a number of computed tokens.
_GROUP_COST = 64
# Maximum depth of nested prefixes.
_MAX_DEPTH = 50
# A prefix must save more tokens than this to justify its own forward pass.
_MIN_SAVED_TOKENS = 64
# Questions that share fewer tokens than this are not merged.
_MIN_SHARED_TOKENS = 8


class PrefixCandidate(Protocol):
    """Token sequence that may start with the same prefix as others."""

    @property
    def index(self) -> int:
        """Position of the request in its call of ``answer``."""
        ...

    @property
    def shareable(self) -> tuple[int, ...]:
        """Tokens that may be part of a shared prefix."""
        ...

    @property
    def trunk_length(self) -> int:
        """Number of tokens before the first branch."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Prompt for text generation as token ids."""

    #: Position of the request in its call of ``answer``.
    index: int
    tokens: tuple[int, ...]
    #: Maximum number of tokens to generate.
    limit: int
    #: True if the prompt ends inside a reasoning block.
    opened: bool = False
    dropped_shots: int = 0

    @property
    def shareable(self) -> tuple[int, ...]:
        """All tokens but the last, whose logits predict the first generated token."""
        return self.tokens[:-1]

    @property
    def trunk_length(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Question:
    """Request for the likelihoods of choices as token ids."""

    #: Position of the request in its call of ``answer``.
    index: int
    #: Per choice, the ids of context and choice.
    rows: tuple[tuple[int, ...], ...]
    #: Per row, the position of the first token of the choice; at least 1.
    starts: tuple[int, ...]
    #: The tokens to compute.
    tree: Tree
    #: Length of the context; of the longest one if every choice has its own context.
    prompt_tokens: int
    dropped_shots: int = 0
    #: Number of choices encoded separately because a token would span context and choice.
    encoded_apart: int = 0
    #: The questions that this one merges, in the order of their rows.
    parts: tuple[Question, ...] = ()

    @property
    def length(self) -> int:
        """Number of tokens to read of the longest row, whose last token is only scored."""
        return max(map(len, self.rows)) - 1

    @property
    def full_size(self) -> int:
        """Number of tokens to compute if every distinct row is padded and computed separately."""
        ends_on_trunk = None in self.tree.branch_of_row
        return (len(self.tree.branches) + ends_on_trunk) * self.length

    @property
    def shareable(self) -> tuple[int, ...]:
        """Tokens that may be part of a shared prefix: those before the first scored position."""
        return self.tree.trunk[: min(self.starts) - 1]

    @property
    def trunk_length(self) -> int:
        """Number of tokens that all rows share."""
        return len(self.tree.trunk)


@dataclass(frozen=True, slots=True)
class Tree:
    """Tokens that a question's rows read: a shared trunk, then one branch each."""

    trunk: tuple[int, ...]
    #: Distinct and not empty.
    branches: tuple[tuple[int, ...], ...]
    #: Per row, the index of its branch; None for a row that ends on the trunk.
    branch_of_row: tuple[int | None, ...]

    @property
    def size(self) -> int:
        """Number of tokens to compute without a cached prefix."""
        return len(self.trunk) + sum(map(len, self.branches))


def build_tree(rows: Sequence[tuple[int, ...]]) -> Tree:
    """Build the tree of the tokens that the rows read."""
    read = [row[:-1] for row in rows]
    common = common_length(read)
    branches: dict[tuple[int, ...], int] = {}
    branch_of_row = [
        branches.setdefault(tokens[common:], len(branches)) if len(tokens) > common else None
        for tokens in read
    ]
    return Tree(read[0][:common], tuple(branches), tuple(branch_of_row))


def merge_questions(questions: Sequence[Question], names: Sequence[str]) -> list[Question]:
    """Merge adjacent questions of the same name if the merged question computes fewer tokens.

    An item whose options appear in several orders has the same text up to its options: one trunk,
    and one branch per order. ``names``: item names by the index of a question.
    """
    merged: list[Question] = []
    for _, same_name in itertools.groupby(questions, key=lambda question: names[question.index]):
        parts = tuple(same_name)
        merged += _merge_parts(parts) if len(parts) > 1 else parts
    return merged


def _merge_parts(parts: tuple[Question, ...]) -> tuple[Question, ...]:
    rows = tuple(row for part in parts for row in part.rows)
    starts = tuple(start for part in parts for start in part.starts)
    tree = build_tree(rows)
    # The common prefix is computed once in either case: compare the tokens after it.
    common = len(tree.trunk)
    separate = sum(part.tree.size - common for part in parts)
    if common < _MIN_SHARED_TOKENS or tree.size - common > separate:
        return parts
    return (Question(parts[0].index, rows, starts, tree, parts[0].prompt_tokens, parts=parts),)


def common_length(rows: Sequence[tuple[int, ...]]) -> int:
    """Return the number of leading tokens that all rows share."""
    # The rows that are first and last in lexicographic order differ at the earliest position.
    first, last = min(rows), max(rows)
    if first == last[: len(first)]:
        return len(first)
    for position, (a, b) in enumerate(zip(first, last, strict=False)):
        if a != b:
            return position
    return min(len(first), len(last))


class ScoredToken(NamedTuple):
    """Token to score: ``node`` of the segment predicts it, for choice number ``choice``."""

    node: int
    token: int
    choice: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Question after a prefix, flattened: the rest of the trunk, then the branches."""

    tokens: tuple[int, ...]
    #: Per token, its position in the row.
    positions: tuple[int, ...]
    #: Per token, 0 on the trunk, else 1 + the index of its branch. A token attends to earlier
    #: tokens of the trunk and of its own branch.
    branch_of: tuple[int, ...]
    scored: tuple[ScoredToken, ...]
    trunk_length: int

    @property
    def is_chain(self) -> bool:
        """True without branches: attention is plain causal."""
        return self.trunk_length == len(self.tokens)


def build_segment(question: Question, skip: int) -> Segment:
    """Flatten a question whose first ``skip`` tokens have been computed as a prefix."""
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
            # The token at a position is predicted at the previous position.
            reader = place - 1
            if reader < len(tree.trunk):
                node = reader - skip
            else:
                branch_number = tree.branch_of_row[choice]
                assert branch_number is not None  # the row reads beyond the trunk
                node = offsets[branch_number] + reader - len(tree.trunk)
            scored.append(ScoredToken(node, row[place], choice))
    return Segment(
        tuple(tokens),
        tuple(positions),
        tuple(branch_of),
        tuple(scored),
        len(tree.trunk) - skip,
    )


S = TypeVar("S")
T = TypeVar("T", bound=PrefixCandidate)


@dataclass(frozen=True, slots=True)
class PrefixGroup(Generic[T]):
    """Questions or prompts that share their first ``shared`` tokens."""

    shared: int
    questions: tuple[T, ...]

    def prefix(self, live: int, *, alone: bool) -> tuple[int, ...]:
        """Return the tokens of the prefix to compute before the questions of the group.

        ``live``: number of leading tokens of the first question that are cached already.
        ``alone``: True if the call has no other requests.
        """
        first = self.questions[0].shareable
        if len(self.questions) > 1:
            saved = self.shared * (len(self.questions) - 1)
            return first[: self.shared] if self.shared <= live or saved > _MIN_SAVED_TOKENS else ()
        if 2 * live >= len(first):
            return first[:live]
        # With one request per call, the next one probably starts with the same tokens.
        return first if alone else ()


def group_by_prefix(questions: Sequence[T]) -> list[PrefixGroup[T]]:
    """Group questions by shared prefixes so that few tokens have to be computed.

    Groups, and the questions in a group, are in the order of ``index``. Prefixes are compared as
    tokens, not as text, because tokens may merge where two texts are joined.
    """
    ordered = sorted(questions, key=lambda question: question.shareable)
    shared = _shared_with_previous([question.shareable for question in ordered])
    lengths = np.array([question.trunk_length for question in ordered])
    division = _divide(shared, lengths, 0, len(ordered), 0)
    groups = [
        PrefixGroup(
            part.shared,
            tuple(sorted((ordered[i] for i in part.members), key=lambda q: q.index)),
        )
        for part in division.parts
    ]
    return sorted(groups, key=lambda part: part.questions[0].index)


class _Part(NamedTuple):
    shared: int
    members: tuple[int, ...]


class _Division(NamedTuple):
    cost: int
    parts: list[_Part]


def _shared_with_previous(rows: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Return, per row, the number of tokens shared with the previous row (0 for the first)."""
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
    """Divide the sorted rows ``begin…end`` into groups at low cost (greedy, recursive).

    All rows share as many tokens as the least similar neighbours. Rows that share more form a
    separate group if that computes fewer tokens than leaving them with the others.
    """
    members = tuple(range(begin, end))
    if end - begin == 1:
        return _Division(int(lengths[begin]), [_Part(0, members)])
    common = int(shared[begin + 1 : end].min())
    cuts = [begin, *(begin + 1 + np.flatnonzero(shared[begin + 1 : end] == common)).tolist(), end]
    cost = 0
    parts: list[_Part] = []
    rest: list[int] = []
    for low, high in itertools.pairwise(cuts):
        together = int(lengths[low:high].sum()) - common * (high - low)
        if high - low > 1 and depth < _MAX_DEPTH:
            separate = _divide(shared, lengths, low, high, depth + 1)
            if separate.cost + _GROUP_COST < together:
                cost += separate.cost + _GROUP_COST
                parts += separate.parts
                continue
        cost += together
        rest += range(low, high)
    if len(rest) == 1:
        parts.append(_Part(0, tuple(rest)))
        cost += common
    elif rest:
        parts.append(_Part(common, tuple(rest)))
        cost += common
    return _Division(cost, parts)


def split_batches(
    questions: Iterable[S],
    size: Callable[[S], int],
    budget: Callable[[], int],
    *,
    padded: bool,
) -> Iterator[list[S]]:
    """Split questions into batches of at most ``budget()`` tokens, or of a single question.

    ``padded``: every question of a batch costs as much as the longest one, so questions are sorted
    by length. Without padding the order is preserved, and early requests are answered early.
    ``budget`` is called for every question because it may shrink during the iteration.
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
