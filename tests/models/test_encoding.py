"""From requests to token ids: what is scored, BOS, chat, and prompts that are too long."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.encoding import Encoder


def encode(tokenizer: Any, request: Request, window: int | None = None) -> Question:
    (question,), refused = Encoder(tokenizer, window).encode_questions([request])
    assert not refused
    return question


def refusal(tokenizer: Any, request: Request, window: int | None = None) -> str:
    questions, (response,) = Encoder(tokenizer, window).encode_questions([request])
    assert not questions
    assert response.error
    assert response.id == request.id
    return response.error


def ask(text: str, *choices: str, **prompt: Any) -> Request:
    return Request("q", Prompt("", (), text, **prompt), choices)


@pytest.mark.parametrize(
    ("text", "delimiter"), [("2+2?\nA. 3\nB. 4\nAnswer:", " "), ("2+2?\nA. 3\nB. 4\nAnswer: ", "")]
)
def test_the_space_belongs_to_the_letter(tokenizer: Any, text: str, delimiter: str) -> None:
    question = encode(tokenizer, ask(text, "A", "B", delimiter=delimiter))
    row, start = question.rows[1], question.starts[1]
    assert tokenizer.decode(row[:start]) == "<s>2+2?\nA. 3\nB. 4\nAnswer:"
    assert tokenizer.decode(row[start:]) == " B"


def test_split_is_by_the_length_of_the_encoded_context(tokenizer: Any) -> None:
    """As lm-eval's _encode_pair: encode context + choice, cut at len(encode(context))."""
    for text in ("Which of these bones", "The sky is blue and", "two\n\n"):
        for choice in ("blue", "  deep", "\n"):
            request = ask(text, choice, "x")
            context = text.rstrip()
            whole = tokenizer(text + " " + choice).input_ids
            question = encode(tokenizer, request)
            assert list(question.rows[0]) == whole
            assert question.starts[0] == len(tokenizer(context).input_ids)


@pytest.mark.parametrize("kind", ["splits", "merges across lines", "prefixes a space"])
def test_encoding_in_parts_equals_encoding_in_whole(tokenizer: Any, kind: str) -> None:
    """Tokenizers that merge over the end of a line, or treat the beginning of a text in a way of
    its own, are found out: the rows are those of whole texts.
    """
    from tokenizers import Tokenizer
    from tokenizers import models
    from tokenizers import normalizers
    from tokenizers import pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    if kind == "merges across lines":
        letters = [*"abAnswer:. \n", "\na", "\nab"]
        merges = [("\n", "a"), ("\na", "b")]
        raw = Tokenizer(models.BPE({c: n for n, c in enumerate(letters)}, merges))
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)
    elif kind == "prefixes a space":
        raw = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        raw.normalizer = normalizers.Prepend(" ")
        raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>")
    rng = random.Random(7)
    requests = [
        ask("".join(rng.choices("ab.: \n", k=rng.randrange(1, 40))) + tail, " a", " b", "ab a")
        for tail in ("\nab:", "\nAnswer:", "\n\nab", "ab", "\n ab.", "")
        for _ in range(20)
    ]
    encoder = Encoder(tokenizer, None)
    questions, refused = encoder.encode_questions(requests)
    assert len(questions) > 100
    for question in questions:
        prompt = requests[question.index].prompt
        for choice, row in zip(requests[question.index].choices, question.rows, strict=True):
            whole = tokenizer(prompt.text + " " + choice).input_ids
            assert list(row)[-len(whole) :] == whole
    assert len(refused) + len(questions) == len(requests)


def test_contexts_are_read_once_not_once_a_choice(tokenizer: Any) -> None:
    class Counting:
        bos_token_id = 0

        def __init__(self) -> None:
            self.characters = 0

        def __call__(self, text: Any, **options: Any) -> Any:
            self.characters += len(text) if isinstance(text, str) else sum(map(len, text))
            return tokenizer(text, **options)

    counting = Counting()
    long = "Which of these bones is longest? " * 20
    requests = [ask(f"{long}{n}\nAnswer:", "A", "B", "C", "D") for n in range(50)]
    questions, _ = Encoder(counting, None).encode_questions(requests)
    assert len(questions) == 50
    assert counting.characters < 1.2 * 50 * len(requests[0].prompt.text)


def test_bos_occurs_exactly_once(tokenizer: Any) -> None:
    plain = ask("Answer:", "A", "B")
    chat = Request("q", plain.prompt, plain.choices, chat=True)
    written = ask("<s>Answer:", "A", "B")
    empty = ask("", "A", "B")
    for request in (plain, chat, written, empty):
        row = encode(tokenizer, request).rows[0]
        assert row.count(0) == 1
        assert row[0] == 0


def test_empty_context_without_bos_starts_with_eos(tokenizer: Any) -> None:
    class WithoutBos:
        bos_token_id = None
        eos_token_id = 1

        def __call__(self, text: Any, **options: Any) -> Any:
            return tokenizer(text, **{**options, "add_special_tokens": False})

    question = encode(WithoutBos(), ask("", "A", "B"))
    assert question.rows[0][0] == 1
    assert question.starts == (1, 1)
    # And nothing is put before a text, as the tokenizer itself puts nothing there.
    assert encode(WithoutBos(), ask("Answer:", "A")).rows[0][0] != 1


def test_tokens_that_a_tokenizer_appends_are_left_out(tokenizer: Any) -> None:
    """An EOS after the context would be read as part of it."""

    class Appending:
        bos_token_id = 0
        eos_token_id = 1

        def __call__(self, text: Any, add_special_tokens: bool = True, **options: Any) -> Any:
            out = tokenizer(text, add_special_tokens=add_special_tokens, **options)
            if add_special_tokens:
                out["input_ids"] = [*out["input_ids"], 1]
            return out

    question = encode(Appending(), ask("Answer:", "A", "B"))
    assert 1 not in question.rows[0]
    assert question.rows[0].count(0) == 1


def test_choices_of_one_token_share_one_context(tokenizer: Any) -> None:
    question = encode(tokenizer, ask("Answer:", "A", "B", "C", "D"))
    assert question.tree.branches == ()
    assert question.prompt_tokens == len(question.tree.trunk)


def test_a_choice_without_a_token_of_its_own_is_an_error(tokenizer: Any) -> None:
    assert "no token of its own" in refusal(tokenizer, ask("Answer:", "", "B", delimiter=""))


def test_a_lone_surrogate_spoils_only_its_own_request(tokenizer: Any) -> None:
    bad, good = ask("\ud83d", "A", "B"), ask("Answer:", "A", "B")
    questions, refused = Encoder(tokenizer, None).encode_questions([bad, good])
    assert [question.index for question in questions] == [1]
    assert "Unicode" in str(refused[0].error)


# --- chat


def test_chat_uses_the_template_and_the_prefix(tokenizer: Any) -> None:
    """Expect "The answer is" + " " + "A", never "The answer isA"."""
    prompt = Prompt("Be brief.\n\n", (("1+1?", "2"),), "2+2?", " ", prefix="The answer is")
    question = encode(tokenizer, Request("q", prompt, ("A", "B"), chat=True))
    assert tokenizer.decode(question.rows[0]) == (
        "<s><system>Be brief.\n<user>1+1?\n<assistant>2\n<user>2+2?\n<assistant>The answer is A"
    )


def with_template(tokenizer: Any, template: str | None, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tokenizer, "chat_template", template)
    return tokenizer


def test_a_system_message_that_is_refused_joins_the_first_turn(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[assistant]"
    )
    with_template(tokenizer, template, monkeypatch)
    request = Request("q", Prompt("Be brief.\n\n", (), "2+2?", ""), ("A", "B"), chat=True)
    encoder = Encoder(tokenizer, None)
    (first, second), refused = encoder.encode_questions([request, request])
    assert not refused
    assert first.rows == second.rows
    assert tokenizer.decode(first.rows[0][1:]) == "[user]Be brief.\n\n2+2?[assistant]A"


def test_a_system_message_that_is_left_out_joins_the_first_turn(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (
        "{% for m in messages %}{% if m['role'] != 'system' %}[{{ m['role'] }}]{{ m['content'] }}"
        "{% endif %}{% endfor %}[assistant]"
    )
    with_template(tokenizer, template, monkeypatch)
    request = Request("q", Prompt("Be brief.\n\n", (), "2+2?", ""), chat=True)
    shown = tokenizer.decode(opening(tokenizer, request).tokens[1:])
    assert shown == "[user]Be brief.\n\n2+2?[assistant]"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "no chat template"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
    ],
)
def test_a_template_that_cannot_be_used_is_an_error(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch, template: str | None, reason: str
) -> None:
    with_template(tokenizer, template, monkeypatch)
    request = Request("q", Prompt("", (), "2+2?", ""), ("A", "B"), chat=True)
    assert reason in refusal(tokenizer, request)


def test_a_letter_inside_a_thought_is_refused(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}<assistant><think>\n"
    with_template(tokenizer, template, monkeypatch)
    prompt = Prompt("", (), "What does <think> mean?", "")
    assert "<think>" in refusal(tokenizer, Request("q", prompt, ("A", "B"), chat=True))
    closed = Prompt("", (), "What does <think> mean?", " ", prefix="</think>The answer is")
    assert encode(tokenizer, Request("q", closed, ("A", "B"), chat=True))
    monkeypatch.setattr(tokenizer, "chat_template", template.replace("<think>\n", ""))
    assert encode(tokenizer, Request("q", prompt, ("A", "B"), chat=True))


# --- the window


def test_whole_shots_are_dropped_from_the_end_until_it_fits(tokenizer: Any) -> None:
    shots = tuple((f"Question {n}?\nAnswer:", "A") for n in range(5))
    prompt = Prompt("About numbers.\n\n", shots, "Last?\nAnswer:")
    request = Request("q", prompt, ("A", "B"))
    full = encode(tokenizer, request)
    assert full.dropped_shots == 0
    assert encode(tokenizer, request, full.length) == full
    shorter = encode(tokenizer, request, full.length - 1)
    assert shorter.dropped_shots == 1
    assert tokenizer.decode(shorter.rows[0][1:]) == prompt.without_last_shot().text + " A"
    bare = Request("q", Prompt(prompt.description, (), prompt.question), ("A", "B"))
    fewest = encode(tokenizer, request, encode(tokenizer, bare).length)
    assert fewest.dropped_shots == 5
    assert fewest.rows == encode(tokenizer, bare).rows


def test_a_question_that_does_not_fit_is_an_error(tokenizer: Any) -> None:
    """lm-eval keeps the last max_length + 1 tokens, so that a long question loses its
    beginning. We do not follow that convention: half a question is another question. Whole
    shots are dropped, and a question that does not fit without any is an error.
    """
    request = Request("q", Prompt("", (("1+1?", "2"),), "a long question " * 20 + "?"), ("A", "B"))
    questions, (response,) = Encoder(tokenizer, 10).encode_questions([request])
    assert not questions
    assert "the model's window is 10" in str(response.error)
    assert response.dropped_shots == 1


# --- prompts that are continued


def opening(tokenizer: Any, request: Request, window: int | None = None) -> EncodedPrompt:
    (opening_of_request,), refused = Encoder(tokenizer, window).encode_prompts([request])
    assert not refused
    return opening_of_request


def test_a_prompt_is_encoded_unchanged(tokenizer: Any) -> None:
    """A blank at its end stays with it: there is no choice for it to belong to."""
    for text in ("Question?\nAnswer:", "Question?\nAnswer: ", "<s>Question?", ""):
        encoded = opening(tokenizer, ask(text))
        assert list(encoded.tokens) == tokenizer(text.removeprefix("<s>")).input_ids
        assert encoded.shareable == encoded.tokens[:-1]
        assert not encoded.opened
    begun = opening(tokenizer, ask("Question?\nAnswer:", prefix="The answer"))
    assert tokenizer.decode(begun.tokens[1:]) == "Question?\nAnswer: The answer"


def test_the_window_holds_prompt_and_text(tokenizer: Any) -> None:
    shots = tuple((f"Question {n}?\nAnswer:", "A") for n in range(5))
    prompt = Prompt("About numbers.\n\n", shots, "Last?\nAnswer:")
    request = Request("q", prompt, decoding=Decoding(max_tokens=20))
    full = opening(tokenizer, request)
    length = len(full.tokens)
    assert opening(tokenizer, request, length + 20) == full
    shorter = opening(tokenizer, request, length + 19)
    assert shorter.dropped_shots == 1
    assert tokenizer.decode(shorter.tokens[1:]) == prompt.without_last_shot().text
    bare = opening(tokenizer, replace(request, prompt=replace(prompt, shots=())))
    fewest = opening(tokenizer, request, len(bare.tokens) + 20)
    assert (fewest.dropped_shots, fewest.limit, fewest.tokens) == (5, 20, bare.tokens)
    # Without shots to leave out, the text gets what room there is.
    less = opening(tokenizer, request, len(bare.tokens) + 7)
    assert (less.dropped_shots, less.limit) == (5, 7)
    accepted, (response,) = Encoder(tokenizer, len(bare.tokens)).encode_prompts([request])
    assert not accepted
    assert f"the question alone takes {len(bare.tokens)} tokens" in str(response.error)
    assert response.dropped_shots == 5


def test_a_prompt_that_ends_within_a_thought_is_marked(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}<assistant><think>\n"
    with_template(tokenizer, template.replace("<think>", "[THINK]"), monkeypatch)
    request = Request("q", Prompt("", (), "What does <think> mean?", ""), chat=True)
    assert opening(tokenizer, request).opened
    with_template(tokenizer, template, monkeypatch)
    assert opening(tokenizer, request).opened
    closed = replace(request, prompt=replace(request.prompt, prefix="</think>"))
    assert not opening(tokenizer, closed).opened
    plain = replace(request, chat=False)
    assert not opening(tokenizer, plain).opened
    begun = replace(plain, prompt=replace(plain.prompt, prefix="<think>"))
    assert opening(tokenizer, begun).opened


def test_samples_are_encoded_once_and_keep_their_places(tokenizer: Any) -> None:
    calls: list[int] = []

    class Counting:
        chat_template = tokenizer.chat_template
        bos_token_id = 0

        def __call__(self, text: Any, **options: Any) -> Any:
            return tokenizer(text, **options)

        def apply_chat_template(self, *args: Any, **options: Any) -> Any:
            calls.append(1)
            return tokenizer.apply_chat_template(*args, **options)

    requests = [
        Request(name, Prompt("", (), text), chat=True, sample=sample)
        for name, text in (("a", "One?"), ("b", "Two?"), ("c", "\ud83d"), ("d", "Two?"))
        for sample in range(3)
    ]
    encoded, refused = Encoder(Counting(), None).encode_prompts(requests)
    assert len(calls) == 4
    assert [prompt.index for prompt in encoded] == [0, 1, 2, 3, 4, 5, 9, 10, 11]
    assert encoded[0].tokens == encoded[2].tokens != encoded[3].tokens == encoded[8].tokens
    assert [(response.id, response.sample) for response in refused] == [
        ("c", 0),
        ("c", 1),
        ("c", 2),
    ]
    assert all("Unicode" in str(response.error) for response in refused)


def test_choices_with_contexts_of_their_own(tokenizer: Any) -> None:
    """Each row is its own context and its own choice, cut where that context ends."""
    request = replace(
        ask("The sky\nis ", "and deep.", "and deep.", "or not."), given=("blue", "a lot of air", "")
    )
    question = encode(tokenizer, request)
    contexts = ("The sky\nis blue", "The sky\nis a lot of air", "The sky\nis")
    choices = (" and deep.", " and deep.", "  or not.")
    for row, start, context, choice in zip(
        question.rows, question.starts, contexts, choices, strict=True
    ):
        assert list(row) == tokenizer(context + choice).input_ids
        assert start == len(tokenizer(context).input_ids)
    assert question.prompt_tokens == max(question.starts)
    assert len(set(question.starts)) > 1


def test_contexts_of_their_own_among_others_and_too_long_ones(tokenizer: Any) -> None:
    prompt = Prompt("", (("q", "a " * 30),), "The sky is ")
    given = Request("q", prompt, ("blue", "deep"), given=("very", "not so"))
    plain = ask("2+2?", "4", "5")
    questions, refused = Encoder(tokenizer, 40).encode_questions([plain, given, plain])
    assert not refused
    assert [question.index for question in questions] == [0, 1, 2]
    assert [question.dropped_shots for question in questions] == [0, 1, 0]
    alone = replace(given, prompt=given.prompt.without_last_shot())
    assert questions[1].rows == encode(tokenizer, alone).rows
    assert questions[0].rows == questions[2].rows == encode(tokenizer, plain).rows


def test_a_chat_has_contexts_in_the_turn_of_the_user(tokenizer: Any) -> None:
    request = replace(
        ask("The sky is ", "up", "up", delimiter=""), given=("blue", "red"), chat=True
    )
    question = encode(tokenizer, request)
    assert [tokenizer.decode(row) for row in question.rows] == [
        "<s><user>The sky is blue\n<assistant>up",
        "<s><user>The sky is red\n<assistant>up",
    ]
