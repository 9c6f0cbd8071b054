"""Protocol: everything that can move a score besides the weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any
from typing import Literal
from typing import get_args

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.hashing import canonical_json
from pytest_llmeval.core.items import Dataset
from pytest_llmeval.core.items import Item
from pytest_llmeval.core.request import Ask
from pytest_llmeval.core.request import Decoding
from pytest_llmeval.core.request import Request
from pytest_llmeval.core.template import Prompt
from pytest_llmeval.core.template import Template
from pytest_llmeval.core.validation import check_kind
from pytest_llmeval.core.validation import check_number
from pytest_llmeval.core.validation import check_several

LETTER_DECODING = Decoding(max_tokens=16, stop=("\n\n",))
"""How a letter is generated that cannot be read from log-likelihoods: its first paragraph."""


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
    decoding: Decoding = field(default_factory=Decoding)
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

    def __post_init__(self) -> None:
        check_kind("a protocol", "name", self.name, str)
        about = f"protocol {self.name!r}"
        check_kind(about, "template", self.template, Template)
        check_kind(about, "scorer", self.scorer, str)
        check_several(about, "also", self.also, str)
        check_number(about, "shots", self.shots, lowest=0)
        check_number(about, "samples", self.samples, lowest=1)
        if self.ask not in get_args(Ask):
            raise ConfigError(
                f"{about}: ask = {self.ask!r} is not one of {', '.join(get_args(Ask))}"
            )

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
        question = item.question.strip()
        for candidate in self.examples or pool:
            if len(shots) == self.shots:
                break
            if not self.allow_copies and (
                candidate.id == item.id or candidate.question.strip() == question
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
        shots = tuple(
            _shot(template, shown)
            for shot in self.draw_shots(item, pool)
            if (shown := shot if arrange is None else arrange(shot)) is not None
        )
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
            description=_made("description", template.description(item.subject)),
            shots=shots,
            question=_made("question", template.question(item)),
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


def _made(part: str, text: Any) -> str:
    """What a template made; TypeError for what would otherwise stand in the prompt as ``None``."""
    if not isinstance(text, str):
        raise TypeError(f"{part} gives {type(text).__name__}, not text")
    return text


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
