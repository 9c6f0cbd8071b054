"""Encoding of requests as token ids: chat templates, context window, special tokens."""

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
from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.batching import build_tree
from pytest_llmeval.models.hf.spec import DEFAULT_DATE
from pytest_llmeval.models.hf.weights_fingerprint import check_date
from pytest_llmeval.models.hf.weights_fingerprint import template_clock

# Texts to encode a continuation after: the first whose tokens do not merge with it is used.
_BEFORE = ("\n", ":", "a")


class PromptError(LlmevalError):
    """Error for a prompt or choice that cannot be encoded; the response carries its message."""


class _PromptText(NamedTuple):
    """Context, and the continuations (delimiter + choice) to encode after it."""

    context: str
    continuations: tuple[str, ...] = ()

    @property
    def last_line(self) -> str:
        """Last line of the context; the whole context if that line starts with white space."""
        begin = self.context.rfind("\n") + 1
        return self.context[begin:] if self.context[begin : begin + 1].strip() else self.context


@dataclass(slots=True)
class _Draft:
    """Request before encoding, with the shots that fit into the context window."""

    index: int
    request: Request
    prompt: Prompt
    #: One context with all choices, or one per choice if every choice has its own context.
    texts: tuple[_PromptText, ...]
    #: Number of dropped shots.
    dropped: int = 0


class _Ids(NamedTuple):
    """Token ids of a context and of its continuations, without special tokens."""

    context: tuple[int, ...]
    #: A continuation is empty if a token spans the end of the context and its beginning.
    continuations: tuple[tuple[int, ...], ...]
    #: Number of continuations encoded separately from the context for that reason.
    apart: int = 0


def _after(context: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """Return the ids after those of the context; empty if ``whole`` does not start with them."""
    return whole[len(context) :] if whole[: len(context)] == context else ()


def _join_last_line(
    text: _PromptText, context: tuple[int, ...], short: dict[str, tuple[int, ...]]
) -> _Ids | None:
    """Join the ids of the context and of its last line with every choice.

    None if the context does not have the same ids when its last line is encoded separately.
    """
    line = short[text.last_line]
    head = context[: len(context) - len(line)]
    if head + line != context:
        return None
    return _Ids(
        context,
        tuple(_after(line, short[text.last_line + choice]) for choice in text.continuations),
    )


class Encoder:
    """Encoder of requests for one tokenizer.

    ``window``: size of the context window in tokens; None if unlimited. ``day``: the date for chat
    templates that print one.
    """

    def __init__(self, tokenizer: Any, window: int | None, day: date = DEFAULT_DATE) -> None:
        self._tokenizer = tokenizer
        self._window = window
        self._day = day
        self._lead = _lead(tokenizer)
        # True if the chat template renders system messages; None until that is tested.
        self._takes_system: bool | None = None
        # True after check_date has passed.
        self._date_checked = False
        # False once the tokenizer has merged tokens over the beginning of a line.
        self._splits_lines = True

    def encode_questions(
        self, requests: Sequence[Request]
    ) -> tuple[list[Question], list[Response]]:
        """Encode requests for choices; return questions, and error responses for failed requests.

        If a prompt exceeds the window, the last shots are dropped until it fits.
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
            encoded = iter(self._encode_spanned(texts, self._encode_texts(texts)))
            too_long: list[_Draft] = []
            for draft in drafts:
                ids = tuple(islice(encoded, len(draft.texts)))
                try:
                    question = self._question(draft, ids)
                    if self._window is None or question.length <= self._window:
                        questions.append(question)
                    else:
                        too_long.append(self._drop_shot(draft, question.length))
                except PromptError as error:
                    refused.append(_refusal(draft.request, error, draft.dropped))
            drafts = too_long
        questions.sort(key=lambda question: question.index)
        return questions, refused

    def encode_prompts(
        self, requests: Sequence[Request]
    ) -> tuple[list[EncodedPrompt], list[Response]]:
        """Encode requests for text; return prompts, and error responses for failed requests.

        If a prompt leaves less than ``max_tokens`` of the window, the last shots are dropped until
        it fits. Without shots, the limit is reduced to the rest of the window.
        """
        equal = _group_equal_prompts(requests)
        openings: list[EncodedPrompt] = []
        refused: list[Response] = []
        drafts: list[_Draft] = []

        def refuse(number: int, error: PromptError, dropped: int) -> None:
            for index in equal[number]:
                refused.append(_refusal(requests[index], error, dropped))

        for number, indices in enumerate(equal):
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
                    tokens = self._lead_for(context) + context
                    opening = self._opening(draft, tokens)
                    if opening is None:
                        too_long.append(self._drop_shot(draft, len(tokens)))
                    else:
                        openings += [replace(opening, index=i) for i in equal[draft.index]]
                except PromptError as error:
                    refuse(draft.index, error, draft.dropped)
            drafts = too_long
        openings.sort(key=lambda opening: opening.index)
        return openings, refused

    def _drop_shot(self, draft: _Draft, length: int) -> _Draft:
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

    def _text(self, request: Request, prompt: Prompt, choices: Sequence[str]) -> _PromptText:
        context = self._chat(prompt) if request.chat else prompt.text
        continuations = tuple(prompt.delimiter + choice for choice in choices)
        try:
            for text in (context, *continuations):
                text.encode()
        except UnicodeEncodeError:
            raise PromptError("the prompt is not valid Unicode (lone surrogate)") from None
        if request.ask == "text":
            return _PromptText(context)
        mark = _open_mark(context, prompt.question) if request.chat else None
        if mark is not None:
            raise PromptError(
                f"the chat template opens reasoning ({mark}) and does not close it: the likelihood"
                " of an answer within reasoning means nothing; use a protocol that generates text"
            )
        # The blank before the answer belongs to the answer: " B" and "B" are different tokens.
        stripped = context.rstrip()
        blanks = context[len(stripped) :]
        return _PromptText(stripped, tuple(blanks + text for text in continuations))

    def _chat(self, prompt: Prompt) -> str:
        messages = prompt.messages()
        if not getattr(self._tokenizer, "chat_template", None):
            raise PromptError("the model has no chat template")
        if not self._date_checked:
            check_date(self._tokenizer, self._day)
            self._date_checked = True
        folded = fold_system(messages)
        try:
            if self._takes_system is None and folded != messages:
                self._takes_system = self._renders_system(messages, folded)
            return self._apply(messages if self._takes_system else folded) + prompt.prefix
        except Exception as error:  # templates may raise any exception
            raise PromptError(f"the chat template refuses the prompt: {error}") from error

    def _renders_system(self, messages: list[dict[str, str]], folded: list[dict[str, str]]) -> bool:
        """Return True if the chat template renders the system message.

        Some templates reject the role, others drop the message silently. Raises the template's
        exception if it also rejects the messages without a system role.
        """
        try:
            text = self._apply(messages)
        except Exception:
            self._apply(folded)
            return False
        try:
            return text != self._apply(messages[1:])
        except Exception:  # the template requires a system message
            return True

    def _apply(self, messages: list[dict[str, str]]) -> str:
        with template_clock(self._day):
            text: str = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=False
            )
        return text

    def _encode_texts(self, texts: Sequence[_PromptText]) -> list[_Ids]:
        """Encode contexts and continuations; a continuation without tokens of its own is empty.

        A context is encoded once, not once per choice. A tokenizer that splits text into lines
        before it merges does not merge over the beginning of the last line, so only the last line
        is encoded again with every choice (four letters after "Answer:" are four short texts for
        all items). This is verified: every context must have the same ids in two parts as in one,
        and so must the first text of every call with all its choices. Otherwise whole texts are
        encoded.
        """
        contexts = self._encode(text.context for text in texts)
        joined: list[_Ids | None] = [None] * len(texts)
        if self._splits_lines:
            short = self._encode(
                text.last_line + choice for text in texts for choice in ("", *text.continuations)
            )
            joined = [_join_last_line(text, contexts[text.context], short) for text in texts]
        remaining = [text for text, ids in zip(texts, joined, strict=True) if ids is None]
        whole = self._encode(
            text.context + choice
            for text in (*texts[:1], *remaining)
            for choice in text.continuations
        )

        def split_whole(text: _PromptText) -> _Ids:
            context = contexts[text.context]
            own = (_after(context, whole[text.context + choice]) for choice in text.continuations)
            return _Ids(context, tuple(own))

        if joined[0] is not None and joined[0] != split_whole(texts[0]):
            self._splits_lines = False
            return self._encode_texts(texts)
        return [ids or split_whole(text) for text, ids in zip(texts, joined, strict=True)]

    def _encode_spanned(self, texts: Sequence[_PromptText], encoded: Sequence[_Ids]) -> list[_Ids]:
        """Encode a continuation separately from its context if a token spans both.

        The ids after the length of the context are then empty (lm-evaluation-harness stops: issues
        1053, 1297 and 3336 of its repository) or only a part of the choice. Pull request 4055 of
        lm-evaluation-harness encodes the continuation separately, too.
        """
        spanned = [
            choice
            for text, ids in zip(texts, encoded, strict=True)
            for choice, own in zip(text.continuations, ids.continuations, strict=True)
            if not own
        ]
        separate = self._encode_separately(spanned)
        return [
            ids
            if all(ids.continuations)
            else _Ids(
                ids.context,
                tuple(
                    own or separate[choice]
                    for choice, own in zip(text.continuations, ids.continuations, strict=True)
                ),
                apart=ids.continuations.count(()),
            )
            for text, ids in zip(texts, encoded, strict=True)
        ]

    def _encode_separately(self, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Encode texts after another text of which no token extends into them.

        At the beginning of a text some tokenizers add a blank, which the choice does not have.
        """
        remaining = list(dict.fromkeys(texts))
        ids_of: dict[str, tuple[int, ...]] = {}
        for before in _BEFORE:
            if not remaining:
                break
            encoded = self._encode([before, *(before + text for text in remaining)])
            own = {text: _after(encoded[before], encoded[before + text]) for text in remaining}
            ids_of.update((text, ids) for text, ids in own.items() if ids and encoded[before])
            remaining = [text for text in remaining if text not in ids_of]
        return ids_of | self._encode(remaining)

    def _encode(self, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Encode the distinct texts in one call, without special tokens."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        encoded = self._tokenizer(
            distinct,
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # the caller checks the length
        ).input_ids
        return {text: tuple(ids) for text, ids in zip(distinct, encoded, strict=True)}

    def _question(self, draft: _Draft, encoded: Sequence[_Ids]) -> Question:
        rows: list[tuple[int, ...]] = []
        starts: list[int] = []
        for ids in encoded:
            lead = self._lead_for(ids.context)
            rows += [lead + ids.context + own for own in ids.continuations]
            starts += [len(lead) + len(ids.context)] * len(ids.continuations)
        for choice, row, start in zip(draft.request.choices, rows, starts, strict=True):
            if len(row) <= start:
                raise PromptError(f"choice {choice!r} has no token of its own after this prompt")
        return Question(
            index=draft.index,
            rows=tuple(rows),
            starts=tuple(starts),
            tree=build_tree(rows),
            prompt_tokens=max(starts),
            dropped_shots=draft.dropped,
            encoded_apart=sum(ids.apart for ids in encoded),
        )

    def _opening(self, draft: _Draft, tokens: tuple[int, ...]) -> EncodedPrompt | None:
        """Return the encoded prompt; None if a shot has to be dropped first."""
        limit = draft.request.decoding.max_tokens
        if self._window is not None and len(tokens) + limit > self._window:
            if draft.prompt.shots or len(tokens) >= self._window:
                return None
            limit = self._window - len(tokens)
        opened = _open_mark(draft.texts[0].context, draft.prompt.question) is not None
        return EncodedPrompt(draft.index, tokens, limit, opened, draft.dropped)

    def _lead_for(self, context: tuple[int, ...]) -> tuple[int, ...]:
        """Return the special tokens to add before a context; never empty for an empty context."""
        if not context:
            return (self._first_token(),)
        # The chat template may have rendered the BOS token: never add a second one.
        return () if context[: len(self._lead)] == self._lead else self._lead

    def _first_token(self) -> int:
        """Return the token that precedes an answer to an empty prompt: BOS, else EOS."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise PromptError("the prompt is empty and the tokenizer has neither BOS nor EOS")


def _group_equal_prompts(requests: Sequence[Request]) -> list[list[int]]:
    """Group the indices of consecutive requests with equal prompts, such as samples of an item."""
    groups: list[list[int]] = []
    for index, request in enumerate(requests):
        before = requests[index - 1]
        same = replace(request, id=before.id, sample=before.sample, arm=before.arm)
        if index and same == before:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def fold_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the messages with the system message prepended to the first user message."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *rest = messages
    return [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def _open_mark(text: str, question: str) -> str | None:
    """Return the mark after the question that opens unfinished reasoning, or None."""
    tail = text[text.rfind(question) + len(question) :] if question in text else text
    return open_reasoning_mark(tail)


def _lead(tokenizer: Any) -> tuple[int, ...]:
    """Return the special tokens that the tokenizer adds before a text.

    Tokens that it adds after a text (EOS) are omitted because the choice follows there.
    """
    plain = list(tokenizer("a", add_special_tokens=False).input_ids)
    special = list(tokenizer("a").input_ids)
    for begin in range(len(special) - len(plain) + 1):
        if special[begin : begin + len(plain)] == plain:
            return tuple(special[:begin])
    return ()


def _refusal(request: Request, error: PromptError, dropped_shots: int = 0) -> Response:
    """Return the error response to a request that cannot be encoded."""
    return Response(
        request.id,
        error=str(error),
        dropped_shots=dropped_shots,
        sample=request.sample,
        arm=request.arm,
    )
