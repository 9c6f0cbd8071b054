"""Protocol: everything except the weights that can change a score."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
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
"""Decoding of a generated letter, for models without log-likelihoods: the first paragraph."""


Arrange = Callable[[Item], Item | None]
"""Function from a shot to the shot with reordered options; None leaves the shot out."""


Draw = Literal["first", "lmeval", "lmeval_spare"]
"""How shots are selected from the pool: the first ones, or at random as lm-eval does.

For a task without a test split lm-eval samples one shot more than it shows (``lmeval_spare``), as
a replacement in case the evaluated item is among them, wherever the shots come from.
"""


_LMEVAL_SEED = 1234


@dataclass(frozen=True)
class Protocol:
    """Everything except the weights that can change a score.

    ``shots_used``, ``prompts_used`` and ``drawn`` are set by ``bound_to``. Raises ConfigError for a
    field that cannot be used.
    """

    name: str
    template: Template
    scorer: str
    #: Number of shots.
    shots: int = 0
    #: What is requested of the model: the log-likelihoods of choices, or text.
    ask: Ask = "choices"
    #: Send the prompt through the model's chat template.
    chat: bool = False
    #: Text with which every answer is made to begin.
    prefix: str = ""
    decoding: Decoding = field(default_factory=Decoding)
    #: Texts per item; log-likelihoods are requested once.
    samples: int = 1
    #: Further scorers of the same responses, each with a result of its own.
    also: tuple[str, ...] = ()
    #: Keep pool items with the question of the evaluated item among the shots. Set only by
    #: protocols that reproduce a tool which does so.
    allow_copies: bool = False
    draw: Draw = "first"
    #: Shots of the protocol itself, used instead of the pool.
    examples: tuple[Item, ...] = ()
    #: System prompt of a chat, before the template's description.
    system: str = ""
    #: In a chat, the shots are text before the question instead of turns.
    shots_as_text: bool = False
    #: Refuse models that return only text, instead of requesting a generated letter. Set it if the
    #: prompts do not show the letters of the options.
    choices_only: bool = False
    #: Version and settings of another tool that made prompts and data; part of the fingerprint.
    origin: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: Hash of all lists of shots that occur in the data set.
    shots_used: str = ""
    #: Hash of the texts that the template renders for the data set: for a part of the items, or
    #: for all if it renders complete prompts.
    prompts_used: str = ""
    #: The settings of the sandbox that can change a verdict, if the scorer runs programs.
    sandbox: str = ""
    #: Item id → indices of its shots in the pool, unless ``draw`` is ``first``; they depend on the
    #: item's place in the whole data set.
    drawn: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_kind("a protocol", "name", self.name, str)
        owner = f"protocol {self.name!r}"
        check_kind(owner, "template", self.template, Template)
        check_kind(owner, "scorer", self.scorer, str)
        check_kind(owner, "system", self.system, str)
        check_several(owner, "also", self.also, str)
        check_number(owner, "shots", self.shots, lowest=0)
        check_number(owner, "samples", self.samples, lowest=1)
        if self.ask not in get_args(Ask):
            raise ConfigError(
                f"{owner}: ask = {self.ask!r} is not one of {', '.join(get_args(Ask))}"
            )
        if self.template.prompt is not None and self.shots:
            raise ConfigError(
                f"{owner}: shots = {self.shots}, but template {self.template.name!r} renders complete"
                " prompts, whose shots are fixed"
            )

    @property
    def answers_per_item(self) -> int:
        """Number of answers to an item; one for log-likelihoods, whatever ``samples`` is."""
        return self.samples if self.ask == "text" else 1

    def with_chat(self, shots_as_text: bool = False) -> Protocol:
        """Return the protocol with the model's chat template, with shots as turns or as text."""
        name = f"{self.name}+chat{'-text' if shots_as_text else ''}"
        if self.template.prompt is not None:
            raise ConfigError(
                f"protocol {self.name!r} has no chat form: template {self.template.name!r} renders"
                " complete prompts"
            )
        return replace(self, name=name, chat=True, shots_as_text=shots_as_text)

    def with_generation(self) -> Protocol:
        """Return the protocol with a generated letter as answer, scored by ``choice``.

        Decoding fields that differ from their defaults are kept. Raises ConfigError with
        ``choices_only``.
        """
        if self.ask == "text":
            return self
        if self.choices_only:
            raise ConfigError(
                f"protocol {self.name!r} compares log-likelihoods of choices and has no variant in"
                " which the model generates a letter"
            )
        changed_decoding = {
            field.name: value
            for field in fields(Decoding)
            if (value := getattr(self.decoding, field.name)) != field.default
        }
        return replace(
            self,
            name=f"{self.name}+generate",
            ask="text",
            scorer="choice",
            also=(),
            decoding=replace(LETTER_DECODING, **changed_decoding),
        )

    def for_other_scorers(self) -> tuple[Protocol, ...]:
        """Return one protocol for every scorer of ``also``, which differ only in the scorer."""
        return tuple(replace(self, scorer=scorer, also=()) for scorer in self.also)

    def bound_to(self, dataset: Dataset) -> Protocol:
        """Return the protocol with the fields that depend on the complete data set.

        ``shots_used`` is a hash of every distinct list of shots; ``prompts_used`` is a hash of the
        texts that the template renders for one item of every subject and number of options, since
        a template may distinguish these.
        """
        drawn = {}
        if self.draw != "first" and self.shots > 0:
            drawn = _select_as_lmeval(dataset, self.shots, spare=self.draw == "lmeval_spare")
        bound = replace(self, drawn=drawn)
        return replace(
            bound, shots_used=bound._shots_hash(dataset), prompts_used=self._prompts_hash(dataset)
        )

    def _shots_hash(self, dataset: Dataset) -> str:
        if self.shots == 0:
            return ""
        # A selection by the item's place changes with the order of the items.
        selections = {
            (
                item.subject,
                item.id if self.draw != "first" else "",
                self.select_shots(item, dataset.pool.get(item.subject, ())),
            )
            for item in dataset.items
        }
        contents = sorted(
            canonical_json([subject, item, [shot.as_json() for shot in shots]])
            for subject, item, shots in selections
        )
        return hashlib.sha256(b"\n".join(contents)).hexdigest()[:16]

    def _prompts_hash(self, dataset: Dataset) -> str:
        if self.template.prompt is not None:
            return self._complete_prompts_hash(dataset)
        kinds: dict[tuple[str, int], Item] = {}
        for item in dataset.items:
            kind = (item.subject, len(item.options))
            if kind not in kinds or item.id < kinds[kind].id:
                kinds[kind] = item
        template, texts = self.template, []
        for _, item in sorted(kinds.items()):
            try:
                texts.append(
                    [
                        template.description(item.subject),
                        template.question(item),
                        list(template.choices(item)),
                        template.shot_answer(item),
                        *([] if template.prefix is None else [template.prefix(item)]),
                        *([] if template.given is None else [list(template.given(item))]),
                    ]
                )
            except Exception as error:  # becomes the item's error when it is evaluated
                texts.append([f"{type(error).__name__}: {error}"])
        return hashlib.sha256(canonical_json(texts)).hexdigest()[:16]

    def _complete_prompts_hash(self, dataset: Dataset) -> str:
        digest = hashlib.sha256()
        for item in sorted(dataset.items, key=lambda item: item.id):
            try:
                request = self.request(item, ())
                parts: list[Any] = [asdict(request.prompt), request.choices, request.given]
            except Exception as error:  # becomes the item's error when it is evaluated
                parts = [f"{type(error).__name__}: {error}"]
            digest.update(canonical_json(parts))
        return digest.hexdigest()[:16]

    def select_shots(self, item: Item, pool: Iterable[Item]) -> tuple[Item, ...]:
        """Return the item's shots: the first of the pool, without the item and its copies.

        A pure function of protocol and item, independent of the order of evaluation, of workers
        and of the selection of items. Returns fewer than ``shots`` if the pool has fewer; the
        caller reports it. Raises ConfigError if ``draw`` is not ``first`` and the protocol is not
        bound to the item's data set.
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
                f"protocol {self.name!r} selects {self.shots} shots by the item's place in its data"
                f" set, and is not bound to a data set with {item.id!r}: call Protocol.bound_to"
            )
        return tuple(pool[number] for number in numbers)

    def render(self, item: Item, pool: Iterable[Item], arrange: Arrange | None = None) -> Prompt:
        """Return the prompt of an item with its shots.

        ``arrange`` reorders the options of a shot, or leaves the shot out by returning None.
        Raises TypeError if the template renders something other than text.
        """
        template = self.template
        if template.prompt is not None:
            return template.prompt(item)
        shots = tuple(
            _shot(template, arranged)
            for shot in self.select_shots(item, pool)
            if (arranged := shot if arrange is None else arrange(shot)) is not None
        )
        as_text = self.chat and self.shots_as_text
        delimiter = template.delimiter
        prefix = self.prefix or (template.prefix(item) if template.prefix else "")
        if self.chat and not prefix:
            # Turns separate question and answer (as in lm-eval), except for shots as text, whose
            # question and answer are in one turn.
            if as_text:
                shots = tuple((f"{question}{delimiter}", answer) for question, answer in shots)
            delimiter = ""
        description = _require_text("description", template.description(item.subject))
        if self.chat and self.system:
            description = "\n\n".join(filter(None, (self.system, description)))
        return Prompt(
            description=description,
            shots=shots,
            question=_require_text("question", template.question(item)),
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
        """Return the request for an item; ``Request.id`` is the item's id."""
        template, has_choices = self.template, self.ask == "choices"
        return Request(
            id=item.id,
            prompt=self.render(item, pool, arrange),
            choices=template.choices(item) if has_choices else (),
            given=template.given(item) if has_choices and template.given else (),
            chat=self.chat,
            decoding=self.decoding,
            seed=seed,
            benchmark=benchmark,
        )


def _require_text(part: str, text: Any) -> str:
    """Return the text; raise TypeError for other types, so that no ``None`` gets into a prompt."""
    if not isinstance(text, str):
        raise TypeError(f"{part} returns {type(text).__name__}, not text")
    return text


def _select_as_lmeval(dataset: Dataset, shots: int, *, spare: bool) -> dict[str, tuple[int, ...]]:
    """Return item id → indices in its subject's pool, as lm-eval's sampler selects the shots.

    lm-eval has one random generator per task (here: per subject) and samples for one item after
    the other, so the shots of an item are those of the n-th sample, n being its place.
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
    """Return a shot's question and answer; cached, since the items of a subject share shots."""
    return template.shot_question(item), template.shot_answer(item)
