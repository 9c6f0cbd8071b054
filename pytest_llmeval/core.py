"""The words of the project as frozen dataclasses: Item, Benchmark, Protocol, Request, Response, Score.

Nothing here does I/O or imports an optional dependency. Every other room builds on these
types, so a change here is a change everywhere: keep them small.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from random import Random
from typing import Any
from typing import Literal

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

ITEM_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""What an item's id may look like: part of test ids, of file names, of command lines."""


class ConfigError(Exception):
    """A user mistake, told in one line: what is wrong, where, and the nearest valid spelling.

    The front doors turn it into their own kind of usage error (``pytest.UsageError``, which
    is final and so cannot be a base class; exit code 4 in both).
    """


class DataError(ConfigError):
    """Benchmark data that cannot be found, read, or trusted."""


class ModelError(Exception):
    """A model that cannot be loaded or used at all (one item that fails is a Response)."""


class RunError(ConfigError):
    """A run folder that cannot be read or written."""


class Outcome(StrEnum):
    """What became of one item, best first. An error is not an answer: it never counts as wrong."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSED = "unparsed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Item:
    """One benchmark question.

    ``gold`` is the index of the right option where there are options, otherwise the answer's
    text. ``id`` is unique in its benchmark and depends on the record alone, never on order,
    limit or seed. ``fields`` holds what only some benchmarks need (reasoning of a shot, tests).
    """

    id: str
    subject: str
    question: str
    gold: int | str
    options: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def gold_label(self) -> str:
        """The gold option's letter, or the gold text of an item without options."""
        return LABELS[self.gold] if isinstance(self.gold, int) else self.gold

    def as_json(self) -> dict[str, Any]:
        """The item as plain JSON values; what the content hash is computed over."""
        return {
            "id": self.id,
            "subject": self.subject,
            "question": self.question,
            "gold": self.gold,
            "options": list(self.options),
            "fields": dict(self.fields),
        }


@dataclass(frozen=True, slots=True)
class Dataset:
    """The items of a benchmark and, by subject, the pool that few-shot examples come from.

    ``warnings``: what is doubtful in the data itself (a key that contradicts itself, two equal
    options), one line each, for people to read.
    """

    items: tuple[Item, ...]
    pool: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def content_hash(self) -> str:
        """SHA-256 (16 hex digits) over all items and the pool: same rows, same hash.

        The order of items says nothing; that of the pool decides which are the first.
        """
        digest = hashlib.sha256()
        for item in sorted(self.items, key=lambda item: item.id):
            digest.update(canonical_json(item.as_json()))
        for subject in sorted(self.pool):
            for item in self.pool[subject]:
                digest.update(canonical_json(["shot", item.as_json()]))
        return digest.hexdigest()[:16]

    def chance(self) -> float | None:
        """Mean of 1/K over the items, K an item's number of options; None without options."""
        if not self.items or not all(item.options for item in self.items):
            return None
        return sum(1 / len(item.options) for item in self.items) / len(self.items)

    def subject_sizes(self) -> dict[str, int]:
        """Number of items of every subject, in the order of first appearance."""
        return subject_sizes(self.items)


def subject_sizes(items: Iterable[Item]) -> dict[str, int]:
    """Number of items of every subject, in the order of first appearance."""
    sizes: dict[str, int] = {}
    for item in items:
        sizes[item.subject] = sizes.get(item.subject, 0) + 1
    return sizes


def check_dataset(name: str, dataset: Dataset) -> None:
    """Raise DataError for a benchmark without items, bad or duplicate ids, impossible options."""
    if not dataset.items:
        raise DataError(f"benchmark {name!r} has no items")
    seen: set[str] = set()
    for item in (*dataset.items, *(shot for pool in dataset.pool.values() for shot in pool)):
        if isinstance(item.gold, int) and not 0 <= item.gold < len(item.options):
            raise DataError(
                f"benchmark {name!r}, item {item.id!r}: gold {item.gold} is outside its"
                f" {len(item.options)} options"
            )
        if len(item.options) == 1 or len(item.options) > len(LABELS):
            raise DataError(
                f"benchmark {name!r}, item {item.id!r}: {len(item.options)} options;"
                f" 2 to {len(LABELS)} can be labelled"
            )
    for item in dataset.items:
        if not ITEM_ID.fullmatch(item.id):
            raise DataError(
                f"benchmark {name!r}: item id {item.id[:120]!r} is not 1 to 100 of the characters"
                " A-Z a-z 0-9 _ . - (pytest_llmeval.sources.safe_id makes one of any text)"
            )
        if item.id in seen:
            raise DataError(f"benchmark {name!r}: item id {item.id!r} occurs twice")
        seen.add(item.id)


@dataclass(frozen=True)
class Template:
    """The text of a published prompt format.

    ``description`` opens the prompt (given the subject); ``question`` renders an item up to
    where the answer starts; ``choices`` are the texts whose likelihood is compared;
    ``answer`` is what a shot shows as its answer (by default the gold choice). ``delimiter``
    stands between question and answer, ``separator`` after every shot. ``prefix`` is text that
    the answer to an item is made to begin with, where that depends on the item. ``given`` is
    what each choice adds to the end of the question, read and not scored (in partial evaluation,
    where the choices fill a blank and what follows the blank is scored).
    """

    name: str
    description: Callable[[str], str]
    question: Callable[[Item], str]
    choices: Callable[[Item], tuple[str, ...]]
    answer: Callable[[Item], str] | None = None
    delimiter: str = " "
    separator: str = "\n\n"
    prefix: Callable[[Item], str] | None = None
    given: Callable[[Item], tuple[str, ...]] | None = None

    def shot_question(self, item: Item) -> str:
        """What a few-shot example shows as its question."""
        given = self.given(item)[item.gold] if self.given and isinstance(item.gold, int) else ""
        return self.question(item) + given

    def shot_answer(self, item: Item) -> str:
        """What a few-shot example shows as its answer, without the delimiter."""
        if self.answer is not None:
            return self.answer(item)
        return self.choices(item)[item.gold] if isinstance(item.gold, int) else item.gold


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt, kept in parts so that a model can drop whole shots or build a chat.

    ``shots`` are (question, answer) pairs. ``prefix`` is text the answer is made to start with.
    ``shots_as_text``: in a chat, shots and question are one turn of the user.
    """

    description: str
    shots: tuple[tuple[str, str], ...]
    question: str
    delimiter: str = " "
    separator: str = "\n\n"
    prefix: str = ""
    shots_as_text: bool = False

    @property
    def text(self) -> str:
        """The prompt as one string, up to where the answer starts."""
        prefix = f"{self.delimiter}{self.prefix}" if self.prefix else ""
        return f"{self.description}{self._shots_text}{self.question}{prefix}"

    @property
    def _shots_text(self) -> str:
        return "".join(f"{q}{self.delimiter}{a}{self.separator}" for q, a in self.shots)

    @property
    def sha256(self) -> str:
        """SHA-256 of ``text`` in UTF-8, in hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def without_last_shot(self) -> Prompt:
        """The same prompt with its last shot left out (Hendrycks et al. drop from the end)."""
        return replace(self, shots=self.shots[:-1])

    def ending_in(self, text: str) -> Prompt:
        """The same prompt with more text at the end of its question."""
        return replace(self, question=self.question + text)

    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages: description as system, every shot as a turn of its own.

        With ``shots_as_text`` they stand before the question instead, in one turn. A ``prefix``
        is the beginning of the assistant's turn and is not among the messages.
        """
        messages = []
        if self.description:
            messages.append({"role": "system", "content": self.description.rstrip()})
        if self.shots_as_text:
            return [*messages, {"role": "user", "content": self._shots_text + self.question}]
        for question, answer in self.shots:
            messages.append({"role": "user", "content": question})
            messages.append({"role": "assistant", "content": answer})
        messages.append({"role": "user", "content": self.question})
        return messages


@dataclass(frozen=True, slots=True)
class Decoding:
    """How text is generated. Temperature 0 is greedy; ``top_k`` 0 keeps the whole vocabulary."""

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, lowest in (("max_tokens", 1), ("temperature", 0), ("top_k", 0)):
            if getattr(self, name) < lowest:
                raise ConfigError(f"decoding: {name} = {getattr(self, name)} is below {lowest}")
        for name in ("top_p", "min_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"decoding: {name} = {getattr(self, name)} is outside [0, 1]")


LETTER_DECODING = Decoding(max_tokens=16, stop=("\n\n",))
"""How a letter is generated that cannot be read from log-likelihoods."""

Ask = Literal["choices", "text"]

Arrange = Callable[[Item], Item | None]
"""A shot with its options in another order; None where it cannot be shown so."""

Draw = Literal["first", "lmeval", "lmeval_spare"]
"""How shots are drawn from the pool: the first of it, or as lm-eval draws them at random.

Of a task that has no test split that tool draws one more than it shows, to have one to spare in
case the asked item is among them (``lmeval_spare``), wherever the shots come from.
"""

_LMEVAL_SEED = 1234


@dataclass(frozen=True)
class Protocol:
    """Everything that can move a score besides the weights.

    ``ask`` says what the model is asked for: the log-likelihoods of choices, or text.
    ``samples`` texts are asked for per item; likelihoods have only one. ``also`` names scorers
    that score the same responses, each a result of its own. ``allow_copies`` keeps
    a pool item whose question equals the asked one among the shots; only protocols that
    reproduce a tool which does so set it. ``examples`` are shots that the protocol itself
    brings; they take the place of the pool. ``shots_as_text``: in a chat, the shots are text
    before the question instead of turns of their own.

    ``sandbox``: where the scorer has programs run, all of it that can move a verdict.

    ``bound_to`` a data set, a protocol has three more: ``shots_used`` and ``prompts_used``
    identify what it shows there, ``drawn`` says where in the pool an item's shots stand under
    ``draw="lmeval"`` (or ``lmeval_spare``), which depends on the item's place in the whole data set.
    """

    name: str
    template: Template
    scorer: str
    shots: int = 0
    ask: Ask = "choices"
    chat: bool = False
    prefix: str = ""
    decoding: Decoding = Decoding()
    samples: int = 1
    also: tuple[str, ...] = ()
    allow_copies: bool = False
    draw: Draw = "first"
    examples: tuple[Item, ...] = ()
    shots_as_text: bool = False
    shots_used: str = ""
    prompts_used: str = ""
    sandbox: str = ""
    drawn: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def answers_per_item(self) -> int:
        """How many answers an item gets: there is one set of log-likelihoods, whatever is asked."""
        return self.samples if self.ask == "text" else 1

    def with_chat(self, shots_as_text: bool = False) -> Protocol:
        """The same protocol through the model's chat template, shots as turns or as text."""
        name = f"{self.name}+chat{'-text' if shots_as_text else ''}"
        return replace(self, name=name, chat=True, shots_as_text=shots_as_text)

    def with_generation(self) -> Protocol:
        """The same prompt answered by a generated letter, which is another scorer: ``choice``.

        What of the decoding is not the default was asked for, and stays.
        """
        if self.ask == "text":
            return self
        asked_for = {
            one.name: value
            for one in fields(Decoding)
            if (value := getattr(self.decoding, one.name)) != one.default
        }
        return replace(
            self,
            name=f"{self.name}+generate",
            ask="text",
            scorer="choice",
            also=(),
            decoding=replace(LETTER_DECODING, **asked_for),
        )

    def under_other_scorers(self) -> tuple[Protocol, ...]:
        """The protocol once for every scorer of ``also``: the same but for what reads the answer."""
        return tuple(replace(self, scorer=scorer, also=()) for scorer in self.also)

    def bound_to(self, dataset: Dataset) -> Protocol:
        """The protocol with what it makes of a data set, whichever items are selected.

        ``shots_used`` is a hash of every distinct list of shots; ``prompts_used`` of what the
        template makes of one item for every subject and number of options, which a template may
        tell apart.
        """
        drawn = {}
        if self.draw != "first" and self.shots > 0:
            drawn = _draw_as_lmeval(dataset, self.shots, spare=self.draw == "lmeval_spare")
        bound = replace(self, drawn=drawn)
        return replace(
            bound, shots_used=bound._shots_hash(dataset), prompts_used=self._prompts_hash(dataset)
        )

    def _shots_hash(self, dataset: Dataset) -> str:
        if self.shots == 0:
            return ""
        # A draw by the item's place is another one for items in another order.
        drawn = {
            (
                item.subject,
                item.id if self.draw != "first" else "",
                self.draw_shots(item, dataset.pool.get(item.subject, ())),
            )
            for item in dataset.items
        }
        contents = sorted(
            canonical_json([subject, item, [shot.as_json() for shot in shots]])
            for subject, item, shots in drawn
        )
        return hashlib.sha256(b"\n".join(contents)).hexdigest()[:16]

    def _prompts_hash(self, dataset: Dataset) -> str:
        kinds: dict[tuple[str, int], Item] = {}
        for item in dataset.items:
            kind = (item.subject, len(item.options))
            if kind not in kinds or item.id < kinds[kind].id:
                kinds[kind] = item
        template, made = self.template, []
        for _, item in sorted(kinds.items()):
            try:
                made.append(
                    [
                        template.description(item.subject),
                        template.question(item),
                        list(template.choices(item)),
                        template.shot_answer(item),
                        *([] if template.prefix is None else [template.prefix(item)]),
                        *([] if template.given is None else [list(template.given(item))]),
                    ]
                )
            except Exception as error:  # the item's own error, when it is asked
                made.append([f"{type(error).__name__}: {error}"])
        return hashlib.sha256(canonical_json(made)).hexdigest()[:16]

    def draw_shots(self, item: Item, pool: Iterable[Item]) -> tuple[Item, ...]:
        """The first ``shots`` of the pool, leaving out the item and copies of its question.

        A pure function of protocol and item: order of evaluation, workers and selection do
        not enter. Fewer are returned when fewer remain; the caller reports it. Raises
        ConfigError for a draw of lm-eval's when the protocol is not bound to the item's data.
        """
        if self.shots and self.draw != "first":
            return self._shots_of_lmeval(item, tuple(pool))
        shots: list[Item] = []
        for candidate in self.examples or pool:
            if len(shots) == self.shots:
                break
            if not self.allow_copies and (
                candidate.id == item.id or candidate.question.strip() == item.question.strip()
            ):
                continue
            shots.append(candidate)
        return tuple(shots)

    def _shots_of_lmeval(self, item: Item, pool: Sequence[Item]) -> tuple[Item, ...]:
        numbers = self.drawn.get(item.id)
        if numbers is None or len(numbers) != min(self.shots, len(pool)):
            raise ConfigError(
                f"protocol {self.name!r} draws {self.shots} shots by the item's place in its data"
                f" set, and it is not bound to one with {item.id!r} (Protocol.bound_to)"
            )
        return tuple(pool[number] for number in numbers)

    def render(self, item: Item, pool: Iterable[Item], arrange: Arrange | None = None) -> Prompt:
        """The prompt of an item with its shots.

        ``arrange`` puts the options of a shot in another order, or leaves the shot out (None).
        """
        template = self.template
        drawn: list[Item | None] = list(self.draw_shots(item, pool))
        if arrange is not None:
            drawn = [arrange(shot) for shot in self.draw_shots(item, pool)]
        shots = tuple(_shot(template, shot) for shot in drawn if shot is not None)
        as_text = self.chat and self.shots_as_text
        delimiter = template.delimiter
        prefix = self.prefix or (template.prefix(item) if template.prefix else "")
        if self.chat and not prefix:
            # The turn itself separates question and answer (lm-eval does the same), except
            # where there is none: between question and answer of a shot that is text.
            if as_text:
                shots = tuple((f"{question}{delimiter}", answer) for question, answer in shots)
            delimiter = ""
        return Prompt(
            description=template.description(item.subject),
            shots=shots,
            question=template.question(item),
            delimiter=delimiter,
            separator=template.separator,
            prefix=prefix,
            shots_as_text=as_text,
        )

    def request(
        self,
        item: Item,
        pool: Iterable[Item],
        seed: int = 0,
        benchmark: str = "",
        arrange: Arrange | None = None,
    ) -> Request:
        """What a model is asked about an item; ``Request.id`` is the item's id."""
        template, compared = self.template, self.ask == "choices"
        return Request(
            id=item.id,
            prompt=self.render(item, pool, arrange),
            choices=template.choices(item) if compared else (),
            given=template.given(item) if compared and template.given else (),
            chat=self.chat,
            decoding=self.decoding,
            seed=seed,
            benchmark=benchmark,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked: the log-likelihood of each choice, or, without choices, text.

    Several samples of an item are several requests that differ in ``sample`` alone and follow
    one another, so that a model may read the prompt once. What is drawn at random for a request
    depends on ``seed``, ``id`` and ``sample``, never on what else is asked. ``benchmark`` is what
    its cost is booked under, and changes no answer. ``given``, if not empty, has one text a choice
    that ends the question where that choice is asked about (``prompts``).
    """

    id: str
    prompt: Prompt
    choices: tuple[str, ...] = ()
    chat: bool = False
    decoding: Decoding = Decoding()
    sample: int = 0
    seed: int = 0
    benchmark: str = ""
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.given and len(self.given) != len(self.choices):
            raise ValueError(f"{len(self.given)} texts given for {len(self.choices)} choices")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """What is read before each choice: the same prompt, unless something is ``given``."""
        if not self.given:
            return (self.prompt,) * len(self.choices)
        return tuple(self.prompt.ending_in(text) for text in self.given)

    @property
    def ask(self) -> Ask:
        """``choices`` or ``text``."""
        return "choices" if self.choices else "text"


@dataclass(frozen=True, slots=True)
class Response:
    """What a model gave for the request with the same id.

    ``sample``: which of several; where a model leaves it out, they are taken in order.
    ``logprobs``: one natural-log probability per choice, in the request's order.
    ``reasoning``: the thought before the answer, which ``text`` does not hold.
    ``dropped_shots``: shots left out because the prompt exceeded the model's window.
    ``seconds``: this request's share of what its batch cost. ``error`` set: the machinery
    failed and there is no answer. Numbers of other libraries become Python's; what cannot be
    an answer (a text that is no text) becomes an ``error``, so that it costs no other item.
    """

    id: str
    logprobs: tuple[float, ...] = ()
    text: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    dropped_shots: int = 0
    seconds: float | None = None
    error: str | None = None
    sample: int | None = None
    reasoning: str | None = None

    def __post_init__(self) -> None:
        # Here, at the border, once, rather than in everything that writes or sends responses.
        for name, convert in _CONVERSIONS.items():
            value = getattr(self, name)
            if value is None:
                continue
            try:
                object.__setattr__(self, name, convert(value))
            except (TypeError, ValueError) as error:
                object.__setattr__(self, name, () if name == "logprobs" else None)
                object.__setattr__(self, "error", f"{name} of the response: {error}")


@dataclass(frozen=True, slots=True)
class Score:
    """A scorer's verdict. ``answer`` is the label or text that was read, None if unparsed.

    ``tie``: two choices shared the highest value and the first of them was taken. ``detail``: how
    the answer was read, in the scorer's own words, where that is worth counting.
    """

    outcome: Outcome
    answer: str | None = None
    tie: bool = False
    error: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class Benchmark:
    """A named, versioned set of items with the protocols it can be asked under.

    ``source`` loads the items; it is given the data folder of the run (``--llm-data``) or
    None, and is called at most once per process. The first protocol is the default.
    """

    name: str
    source: Callable[[Any], Dataset]
    protocols: tuple[Protocol, ...]
    version: str = "1"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", self.name):
            raise ConfigError(f"benchmark name {self.name!r}: use letters, digits, '_', '.', '-'")
        if not self.protocols:
            raise ConfigError(f"benchmark {self.name!r} has no protocol")


@dataclass(frozen=True, slots=True)
class Record:
    """One line on disk: an item × sample with its outcome, its response and fingerprints.

    ``left_out``: the response stands, but the test did not come to a verdict (it was skipped,
    or the run was cut short), so the item counts as not run. ``response_of`` names the scorer
    whose record holds the response, where several score the same one. ``order``: of a permutation
    audit, the labels of the options in the order shown (``CADB``); ``answer`` and ``gold`` are
    labels of the original order there, ``logprobs`` are in the order shown. ``detail``: as in
    ``Score``.
    """

    model: str
    benchmark: str
    scorer: str
    item: str
    subject: str
    outcome: Outcome
    answer: str | None
    gold: str
    sample: int = 0
    logprobs: tuple[float, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_sha256: str = ""
    dropped_shots: int = 0
    tie: bool = False
    seconds: float | None = None
    error: str | None = None
    protocol: str = ""
    data: str = ""
    model_fingerprint: str | None = None
    left_out: bool = False
    response_of: str = ""
    order: str = ""
    detail: str = ""


def _draw_as_lmeval(dataset: Dataset, shots: int, *, spare: bool) -> dict[str, tuple[int, ...]]:
    """Item id → places in its subject's pool: what lm-eval's sampler draws for the item.

    That tool makes one random generator a task (here: a subject) and draws for one item after
    the other, so an item's shots are those of the n-th draw, n its place among the items.
    """
    generators: dict[str, Random] = {}
    drawn: dict[str, tuple[int, ...]] = {}
    for item in dataset.items:
        generator = generators.setdefault(item.subject, Random(_LMEVAL_SEED))
        size = len(dataset.pool.get(item.subject, ()))
        drawn[item.id] = tuple(generator.sample(range(size), min(shots + spare, size))[:shots])
    return drawn


@lru_cache(maxsize=8192)
def _shot(template: Template, item: Item) -> tuple[str, str]:
    """A shot's question and answer; all items of a subject show the same few."""
    return template.shot_question(item), template.shot_answer(item)


def canonical_json(value: object) -> bytes:
    """JSON that is the same for equal values: what hashes are computed over."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii")


def mend(text: str) -> str:
    """The text without lone surrogates, which can neither be written as UTF-8 nor be sent."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} is not text")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "error": mend,
    "text": mend,
    "reasoning": mend,
    "finish_reason": mend,
    "logprobs": lambda values: tuple(float(value) for value in values),
    "prompt_tokens": int,
    "completion_tokens": int,
    "dropped_shots": int,
    "sample": int,
    "seconds": _finite,
}
