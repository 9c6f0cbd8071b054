"""Requests → questions and openings: text or chat, cut to the model's window, as token ids."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.reasoning_marks import open_reasoning_mark
from pytest_llmeval.models.hf.batching import Opening
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import tree_of
from pytest_llmeval.models.hf.spec import DEFAULT_DATE
from pytest_llmeval.models.hf.weights_fingerprint import at
from pytest_llmeval.models.hf.weights_fingerprint import check_date

# What a text is put after to be encoded alone: the first of these that does not merge with it.
_BEFORE = ("\n", ":", "a")


class PromptError(LlmevalError):
    """A prompt or choice that cannot be encoded; the message is the error of its response."""


class _Text(NamedTuple):
    """A context and what may follow it: delimiter and choice."""

    context: str
    continuations: tuple[str, ...] = ()

    @property
    def last_line(self) -> str:
        """The context from its last line on; all of it where that begins with a blank."""
        begin = self.context.rfind("\n") + 1
        return self.context[begin:] if self.context[begin : begin + 1].strip() else self.context


@dataclass(slots=True)
class _Draft:
    """A request on its way to token ids.

    ``texts``: one context with all choices, or, where every choice has a context of its own, one
    a choice.
    """

    index: int
    request: Request
    prompt: Prompt
    texts: tuple[_Text, ...]
    dropped: int = 0


class _Ids(NamedTuple):
    """Token ids of a context, and of each continuation after it, without special tokens.

    A continuation without ids has none in the whole text: a token spans the join. ``apart``: how
    many were encoded apart from the context for that reason.
    """

    context: tuple[int, ...]
    continuations: tuple[tuple[int, ...], ...]
    apart: int = 0


def _after(context: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that follow the context's; none where the whole text does not begin with them."""
    return whole[len(context) :] if whole[: len(context)] == context else ()


def _joined(
    text: _Text, context: tuple[int, ...], short: dict[str, tuple[int, ...]]
) -> _Ids | None:
    """The ids put together at the last line; None where the context itself does not fit so."""
    line = short[text.last_line]
    head = context[: len(context) - len(line)]
    if head + line != context:
        return None
    return _Ids(
        context,
        tuple(_after(line, short[text.last_line + choice]) for choice in text.continuations),
    )


class Encoder:
    """Turns requests into questions (choices) and openings (text) for one tokenizer.

    ``window``: the number of tokens that the model can read, or None where it has no bound.
    ``day``: the date for a chat template that writes one.
    """

    def __init__(self, tokenizer: Any, window: int | None, day: date = DEFAULT_DATE) -> None:
        self._tokenizer = tokenizer
        self._window = window
        self._day = day
        self._lead = _lead(tokenizer)
        # Whether the chat template takes a system message; None: not known yet.
        self._takes_system: bool | None = None
        # Whether the chat template is known to read this date.
        self._dated = False
        # Whether this tokenizer was found to start anew at the beginning of a line.
        self._splits = True

    def questions(self, requests: Sequence[Request]) -> tuple[list[Question], list[Response]]:
        """The questions that can be asked, and an error response for every other request.

        A prompt longer than the window loses whole shots from the end until it fits.
        """
        questions: list[Question] = []
        refused: list[Response] = []
        drafts: list[_Draft] = []
        for index, request in enumerate(requests):
            try:
                drafts.append(self._draft(index, request, request.prompt, 0))
            except PromptError as error:
                refused.append(_refusal(request, error))
        while drafts:
            texts = [text for draft in drafts for text in draft.texts]
            encoded = iter(self._joins_apart(texts, self._encoded(texts)))
            too_long: list[_Draft] = []
            for draft in drafts:
                ids = tuple(islice(encoded, len(draft.texts)))
                try:
                    question = self._question(draft, ids)
                    if self._window is None or question.length <= self._window:
                        questions.append(question)
                    else:
                        too_long.append(self._shorter(draft, question.length))
                except PromptError as error:
                    refused.append(_refusal(draft.request, error, draft.dropped))
            drafts = too_long
        questions.sort(key=lambda question: question.index)
        return questions, refused

    def openings(self, requests: Sequence[Request]) -> tuple[list[Opening], list[Response]]:
        """The prompts that can be continued, and an error response for every other request.

        A prompt that leaves less than ``max_tokens`` of the window loses whole shots from the
        end until it does not; where no shots are left, the text gets what room there is.
        """
        alike = _alike(requests)
        openings: list[Opening] = []
        refused: list[Response] = []
        drafts: list[_Draft] = []

        def refuse(number: int, error: PromptError, dropped: int) -> None:
            for one in (requests[index] for index in alike[number]):
                refused.append(_refusal(one, error, dropped))

        for number, indices in enumerate(alike):
            request = requests[indices[0]]
            try:
                drafts.append(self._draft(number, request, request.prompt, 0))
            except PromptError as error:
                refuse(number, error, 0)
        while drafts:
            contexts = self._encode(draft.texts[0].context for draft in drafts)
            too_long: list[_Draft] = []
            for draft in drafts:
                context = contexts[draft.texts[0].context]
                try:
                    tokens = self._lead_of(context) + context
                    opening = self._opening(draft, tokens)
                    if opening is None:
                        too_long.append(self._shorter(draft, len(tokens)))
                    else:
                        openings += [replace(opening, index=i) for i in alike[draft.index]]
                except PromptError as error:
                    refuse(draft.index, error, draft.dropped)
            drafts = too_long
        openings.sort(key=lambda opening: opening.index)
        return openings, refused

    def _shorter(self, draft: _Draft, length: int) -> _Draft:
        if not draft.prompt.shots:
            raise PromptError(
                f"the question alone takes {length} tokens, the model's window is {self._window}"
            )
        return self._draft(
            draft.index, draft.request, draft.prompt.without_last_shot(), draft.dropped + 1
        )

    def _draft(self, index: int, request: Request, prompt: Prompt, dropped: int) -> _Draft:
        if request.given:
            texts = [
                self._text(request, prompt.with_question_suffix(given), (choice,))
                for given, choice in zip(request.given, request.choices, strict=True)
            ]
        else:
            texts = [self._text(request, prompt, request.choices)]
        return _Draft(index, request, prompt, tuple(texts), dropped)

    def _text(self, request: Request, prompt: Prompt, choices: Sequence[str]) -> _Text:
        context = self._chat(prompt) if request.chat else prompt.text
        continuations = tuple(prompt.delimiter + choice for choice in choices)
        try:
            for text in (context, *continuations):
                text.encode()
        except UnicodeEncodeError:
            raise PromptError("the prompt is not valid Unicode (lone surrogate)") from None
        if request.ask == "text":
            return _Text(context)
        mark = _open_mark(context, prompt.question) if request.chat else None
        if mark is not None:
            raise PromptError(
                f"the chat template opens reasoning ({mark}) and does not close it: the likelihood"
                " of an answer within reasoning means nothing; use a protocol that generates text"
            )
        # The blank before the answer belongs to the answer: " B" is a token, "B" another.
        kept = context.rstrip()
        moved = context[len(kept) :]
        return _Text(kept, tuple(moved + text for text in continuations))

    def _chat(self, prompt: Prompt) -> str:
        messages = prompt.messages()
        if not getattr(self._tokenizer, "chat_template", None):
            raise PromptError("the model has no chat template")
        if not self._dated:
            check_date(self._tokenizer, self._day)
            self._dated = True
        folded = fold_system(messages)
        try:
            if self._takes_system is None and folded != messages:
                self._takes_system = self._shows_system(messages, folded)
            return self._apply(messages if self._takes_system else folded) + prompt.prefix
        except Exception as error:  # whatever a template raises is the template's refusal
            raise PromptError(f"the chat template refuses the prompt: {error}") from error

    def _shows_system(self, messages: list[dict[str, str]], folded: list[dict[str, str]]) -> bool:
        """Whether a system message is part of what the chat template makes.

        Some templates refuse the role, some leave it out without a word. Raises what the
        template raises where it is not the role that it refuses.
        """
        try:
            text = self._apply(messages)
        except Exception:
            self._apply(folded)
            return False
        try:
            return text != self._apply(messages[1:])
        except Exception:  # it wants one
            return True

    def _apply(self, messages: list[dict[str, str]]) -> str:
        with at(self._day):
            text: str = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
        return text

    def _encoded(self, texts: Sequence[_Text]) -> list[_Ids]:
        """Ids of every context, and of each continuation as far as it has tokens of its own.

        A context is read once, not once a choice: where its last line begins, a tokenizer that
        splits text before it merges starts anew, so only the last line is encoded again with
        every choice (four letters after "Answer:" are four short texts for all items). That a
        tokenizer is of this kind is not assumed: every context must come out the same in two
        parts as in one, and so must the first text of every call with all its choices.
        Otherwise whole texts are encoded.
        """
        contexts = self._encode(text.context for text in texts)
        found: list[_Ids | None] = [None] * len(texts)
        if self._splits:
            short = self._encode(
                text.last_line + choice for text in texts for choice in ("", *text.continuations)
            )
            found = [_joined(text, contexts[text.context], short) for text in texts]
        doubtful = [text for text, ids in zip(texts, found, strict=True) if ids is None]
        whole = self._encode(
            text.context + choice
            for text in (*texts[:1], *doubtful)
            for choice in text.continuations
        )

        def in_whole(text: _Text) -> _Ids:
            context = contexts[text.context]
            own = (_after(context, whole[text.context + choice]) for choice in text.continuations)
            return _Ids(context, tuple(own))

        if found[0] is not None and found[0] != in_whole(texts[0]):
            self._splits = False
            return self._encoded(texts)
        return [ids or in_whole(text) for text, ids in zip(texts, found, strict=True)]

    def _joins_apart(self, texts: Sequence[_Text], encoded: Sequence[_Ids]) -> list[_Ids]:
        """The ids, with every continuation encoded apart from its context where a token spans both.

        No token of the whole text is the choice's own there: what follows the length of the
        context is empty (lm-evaluation-harness stops: issues 1053, 1297 and 3336 of its
        repository) or a part of the choice. Its pull request 4055 encodes the continuation alone.
        """
        spanned = [
            choice
            for text, ids in zip(texts, encoded, strict=True)
            for choice, own in zip(text.continuations, ids.continuations, strict=True)
            if not own
        ]
        alone = self._alone(spanned)
        return [
            ids
            if all(ids.continuations)
            else _Ids(
                ids.context,
                tuple(
                    own or alone[choice]
                    for choice, own in zip(text.continuations, ids.continuations, strict=True)
                ),
                apart=ids.continuations.count(()),
            )
            for text, ids in zip(texts, encoded, strict=True)
        ]

    def _alone(self, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Ids of texts as they are within a longer one, after something that no token spans.

        At the beginning of a text some tokenizers add a blank, which the choice does not have.
        """
        left = list(dict.fromkeys(texts))
        found: dict[str, tuple[int, ...]] = {}
        for before in _BEFORE:
            if not left:
                break
            encoded = self._encode([before, *(before + text for text in left)])
            own = {text: _after(encoded[before], encoded[before + text]) for text in left}
            found.update((text, ids) for text, ids in own.items() if ids and encoded[before])
            left = [text for text in left if text not in found]
        return found | self._encode(left)

    def _encode(self, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Ids of the texts without special tokens; each text once, all in one call."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        encoded = self._tokenizer(
            distinct,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # longer than the model reads is for the caller to judge
        ).input_ids
        return {text: tuple(ids) for text, ids in zip(distinct, encoded, strict=True)}

    def _question(self, draft: _Draft, encoded: Sequence[_Ids]) -> Question:
        rows: list[tuple[int, ...]] = []
        starts: list[int] = []
        for ids in encoded:
            lead = self._lead_of(ids.context)
            rows += [lead + ids.context + own for own in ids.continuations]
            starts += [len(lead) + len(ids.context)] * len(ids.continuations)
        for choice, row, start in zip(draft.request.choices, rows, starts, strict=True):
            if len(row) <= start:
                raise PromptError(f"choice {choice!r} has no token of its own after this prompt")
        return Question(
            index=draft.index,
            rows=tuple(rows),
            starts=tuple(starts),
            tree=tree_of(rows),
            prompt_tokens=max(starts),
            dropped_shots=draft.dropped,
            encoded_apart=sum(ids.apart for ids in encoded),
        )

    def _opening(self, draft: _Draft, tokens: tuple[int, ...]) -> Opening | None:
        """The opening; None where it is too long as it is."""
        limit = draft.request.decoding.max_tokens
        if self._window is not None and len(tokens) + limit > self._window:
            if draft.prompt.shots or len(tokens) >= self._window:
                return None
            limit = self._window - len(tokens)
        opened = _open_mark(draft.texts[0].context, draft.prompt.question) is not None
        return Opening(draft.index, tokens, limit, opened, draft.dropped)

    def _lead_of(self, context: tuple[int, ...]) -> tuple[int, ...]:
        """What stands before a context; before an empty one there is always something."""
        if not context:
            return (self._first_token(),)
        # A chat template may have written the BOS already: it stands there once.
        return () if context[: len(self._lead)] == self._lead else self._lead

    def _first_token(self) -> int:
        """What stands before an answer to nothing: BOS, else EOS."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise PromptError("the prompt is empty and the tokenizer has neither BOS nor EOS")


def _alike(requests: Sequence[Request]) -> list[list[int]]:
    """Neighbours with the same prompt, as the samples of an item are: they are encoded once."""
    found: list[list[int]] = []
    for index, request in enumerate(requests):
        before = requests[index - 1]
        same = replace(request, id=before.id, sample=before.sample, arm=before.arm)
        if index and same == before:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def fold_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The messages with the system message put before the first user's, in one turn."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *rest = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _open_mark(text: str, question: str) -> str | None:
    """The mark behind the question that leaves reasoning open where the answer would start."""
    tail = text[text.rfind(question) + len(question) :] if question in text else text
    return open_reasoning_mark(tail)


def _lead(tokenizer: Any) -> tuple[int, ...]:
    """The special tokens that the tokenizer puts before a text by itself.

    What it would put after a text (an EOS) is left out: the choice follows there.
    """
    plain = list(tokenizer("a", add_special_tokens=False).input_ids)
    special = list(tokenizer("a").input_ids)
    for begin in range(len(special) - len(plain) + 1):
        if special[begin : begin + len(plain)] == plain:
            return tuple(special[:begin])
    return ()


def _refusal(request: Request, error: PromptError, dropped_shots: int = 0) -> Response:
    """The response to a request that cannot be encoded."""
    return Response(
        request.id,
        error=str(error),
        dropped_shots=dropped_shots,
        sample=request.sample,
        arm=request.arm,
    )
