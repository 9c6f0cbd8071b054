"""Choices whose text merges with the end of their context, for tokenizers of every kind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("transformers", reason="the extra hf is not installed")

from tokenizers import AddedToken
from tokenizers import Tokenizer
from tokenizers import decoders
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_llmeval.models.hf.batching import Question
from pytest_llmeval.models.hf.encoding import Encoder
from pytest_llmeval.models.hf.loading import LoadedModel
from pytest_llmeval.models.hf.loglikelihood import ChoiceEngine

Merges = Sequence[tuple[str, str]]


def bpe(letters: Sequence[str], merges: Merges, **options: Any) -> Tokenizer:
    vocabulary = dict.fromkeys([*letters, *("".join(pair) for pair in merges)])
    numbers = {token: number for number, token in enumerate(vocabulary)}
    return Tokenizer(models.BPE(numbers, list(merges), **options))


def fast(raw: Tokenizer, bos: str = "<s>") -> Any:
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=bos)


def plain() -> Any:
    """BPE over whole texts: tokens merge over everything."""
    merges = [("a", "b"), ("b", "c"), (":", "a"), ("ab", ":"), ("c", "c"), ("\n", "a"), (" ", "a")]
    raw = bpe(["<s>", "</s>", *"abc: \n"], merges)
    raw.decoder = decoders.Fuse()
    return fast(raw)


def sentencepiece(scheme: str) -> Any:
    """BPE as SentencePiece makes it: a blank is put before a text, by one part or another."""
    merges = [("(", "A"), ("▁", "A"), ("▁", "B"), ("A", ")")]
    letters = ["<s>", "</s>", "<unk>", *"(AB):▁", "<0x0A>"]
    raw = bpe(letters, merges, unk_token="<unk>", byte_fallback=True)
    if scheme == "prepend":
        raw.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    return fast(raw)


def wordpiece() -> Any:
    words = ["<s>", "[UNK]", "blu", "##e", "e", "blue", ":", "a", "r", "##r", "bluer"]
    raw = Tokenizer(models.WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return fast(raw)


def unigram() -> Any:
    scores = {"▁hel": -2, "lo": -2, "▁hello": -1, "▁wor": -2, "ld": -2, "▁": -3, "a": -4, ":": -3}
    pieces = [("<unk>", 0.0), *scores.items(), *((letter, -6) for letter in "helowrd")]
    raw = Tokenizer(models.Unigram([(piece, float(score)) for piece, score in pieces], unk_id=0))
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    return fast(raw, "<unk>")


def bytewise() -> Any:
    """Tokens over bytes, one of which has the end of a character and the beginning of the next."""
    coder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    first, two, three = (coder.pre_tokenize_str(character)[0][0] for character in "北京海")
    raw = bpe(["<s>", *first, *two, *three, *coder.alphabet()], [(first[-1], two[0])])
    raw.pre_tokenizer = coder
    raw.decoder = decoders.ByteLevel()
    return fast(raw)


def ask(text: str, *choices: str, delimiter: str = "", name: str = "q") -> Request:
    return Request(name, Prompt("", (), text, delimiter), choices)


def encode(tokenizer: Any, request: Request) -> Question:
    (question,), refused = Encoder(tokenizer, None).encode_questions([request])
    assert not refused
    return question


def pieces(tokenizer: Any, request: Request) -> list[tuple[list[str], list[str]]]:
    """Context and choice of every row, as tokens; the first token of the model left out."""
    question = encode(tokenizer, request)
    words = [tokenizer.convert_ids_to_tokens(list(row)) for row in question.rows]
    return [(row[:at], row[at:]) for row, at in zip(words, question.starts, strict=True)]


@pytest.mark.parametrize(
    ("tokenizer", "request_", "expected", "apart"),
    [
        # Nothing is left after the context's length; a part of the choice is; the join is clean.
        (plain(), ask("c:", "a", "ab", "c"), [("c:", "a"), ("c:", "ab"), ("c:", "c")], 1),
        (plain(), ask("ca", "b", "bcc"), [("ca", "b"), ("ca", "b cc")], 2),
        (sentencepiece("always"), ask("(", "A", "B"), [("▁(", "A"), ("▁(", "B")], 1),
        (sentencepiece("first"), ask("(", "A", "A)"), [("▁(", "A"), ("▁(", "A)")], 2),
        (sentencepiece("prepend"), ask("(", "A", "A)"), [("▁(", "A"), ("▁(", "A)")], 2),
        (sentencepiece("always"), ask("B:", " A", "A"), [("▁B:", "▁A"), ("▁B:", "A")], 0),
        (wordpiece(), ask("blu", "e", "er"), [("blu", "e"), ("blu", "e##r")], 2),
        (unigram(), ask("hel", "lo", "ld"), [("▁hel", "lo"), ("▁hel", "ld")], 1),
        (unigram(), ask("hel", " lo", "lo"), [("▁hel", "▁lo"), ("▁hel", "lo")], 1),
    ],
)
def test_a_choice_is_encoded_alone_where_a_token_spans_the_join(
    tokenizer: Any, request_: Request, expected: list[tuple[str, str]], apart: int
) -> None:
    """The context keeps its own tokens, the choice gets all of its text and nothing else."""
    joins = pieces(tokenizer, request_)
    assert [("".join(context), "".join(other)) for context, other in joins] == [
        (context, other.replace(" ", "")) for context, other in expected
    ]
    assert encode(tokenizer, request_).encoded_apart == apart


def test_a_character_is_not_cut_by_a_token_over_its_bytes() -> None:
    tokenizer = bytewise()
    whole = tokenizer("北京", add_special_tokens=False).input_ids
    context = tokenizer("北", add_special_tokens=False).input_ids
    assert whole[: len(context)] != context
    question = encode(tokenizer, ask("北", "京", "海"))
    assert question.encoded_apart == 1
    for row, start, choice in zip(question.rows, question.starts, "京海", strict=True):
        assert list(row[:start]) == context
        assert tokenizer.decode(row[start:]) == choice


def test_special_tokens_are_read_as_such_and_merge_as_well() -> None:
    """As lm-eval does, which leaves the text to the tokenizer: in an item it is the token."""
    tokenizer = plain()
    tokenizer.add_special_tokens({"additional_special_tokens": [AddedToken("ca:")]})
    (special,) = tokenizer("ca:").input_ids
    assert special in encode(tokenizer, ask("ab ca: c", "a")).rows[0]
    question = encode(tokenizer, ask("ab ca", ":", " b", "ca:"))
    assert [special in row for row in question.rows] == [False, False, True]
    assert question.encoded_apart == 1


def test_rows_are_whole_texts_or_context_and_choice(tokenizer: Any) -> None:
    """Random texts: the whole text where it begins with the context, else both, none lost."""
    rng = random.Random(3)
    for coder in (plain(), tokenizer):
        requests = [
            ask(
                "".join(rng.choices("abc:\n", k=rng.randrange(1, 12))).rstrip() or "c",
                *("".join(rng.choices("abc: \n", k=rng.randrange(1, 5))) for _ in range(3)),
            )
            for _ in range(300)
        ]
        questions, refused = Encoder(coder, None).encode_questions(requests)
        assert not refused
        spanned = 0
        for question in questions:
            request = requests[question.index]
            context = coder(request.prompt.text, add_special_tokens=False).input_ids
            apart = 0
            for choice, row, start in zip(
                request.choices, question.rows, question.starts, strict=True
            ):
                whole = coder(request.prompt.text + choice, add_special_tokens=False).input_ids
                read = list(row[start - len(context) :])
                if whole[: len(context)] == context:
                    assert read == whole
                else:
                    apart += 1
                    assert read[: len(context)] == context
                    assert coder.decode(read[len(context) :]) == choice
            assert question.encoded_apart == apart
            spanned += apart
        assert spanned > 100 or coder is tokenizer


@pytest.mark.parametrize("choice", ["", " "])
def test_a_choice_without_any_token_is_refused(choice: str) -> None:
    """``wordpiece`` drops blanks: nothing is left to score, and nothing is made up."""
    good = ask("blu", "e", "r", name="good")
    questions, (response,) = Encoder(wordpiece(), None).encode_questions(
        [ask("blu", "e", choice), good]
    )
    assert [question.index for question in questions] == [1]
    assert "no token of its own" in str(response.error)


def test_choices_of_equal_tokens_stay_equal() -> None:
    """This tokenizer reads no capitals: the two choices are one to the model, apart as together."""
    for context in ("blu", "a"):
        upper, other = encode(wordpiece(), ask(context, "E", "e")).rows
        assert upper == other


def test_nothing_merges_with_an_empty_context() -> None:
    for tokenizer in (plain(), sentencepiece("always"), unigram()):
        question = encode(tokenizer, ask("", "A" if tokenizer.vocab.get("A") else "a"))
        assert (question.starts, question.encoded_apart) == ((1,), 0)


@pytest.fixture
def engine(torch: Any, llama: Any) -> ChoiceEngine:
    return ChoiceEngine(LoadedModel(llama, plain(), torch.device("cpu")))


def test_both_paths_and_all_batches_give_what_the_model_gives(
    torch: Any, llama: Any, engine: ChoiceEngine
) -> None:
    """Items with and without merging together, one by one, packed, in full, and by hand."""
    requests = [
        ask("ca: " * 9 + f"c{'b' * number}\ncc:", "ab", "c", "a", "a:", name=f"q-{number}")
        for number in range(4)
    ] + [ask("ca: " * 9 + "cc", "b", ":", name="clean"), ask("ca", "b", "bcc", name="short")]
    expected = {}
    for request in requests:
        question = encode(plain(), request)
        values = []
        for row, start in zip(question.rows, question.starts, strict=True):
            with torch.inference_mode():
                logprobs = llama(torch.tensor([row])).logits[0].log_softmax(-1)
            values.append(sum(float(logprobs[n - 1, row[n]]) for n in range(start, len(row))))
        expected[request.id] = pytest.approx(values, abs=1e-4)
    assert engine._packed is not None
    together = list(engine.answer(requests))
    assert {response.id: list(response.logprobs) for response in together} == expected
    assert [response.encoded_apart for response in together] == [2, 2, 2, 2, 0, 2]
    for request in requests:
        (alone,) = engine.answer([request])
        assert list(alone.logprobs) == expected[request.id]
    engine._packed = None
    assert {
        response.id: list(response.logprobs) for response in engine.answer(requests)
    } == expected


def test_contexts_of_their_own_merge_choice_by_choice(engine: ChoiceEngine) -> None:
    prompt = Prompt("", (), "c", "")
    request = Request("given", prompt, ("a", "a"), given=(":", "b"))
    question = encode(plain(), request)
    assert question.encoded_apart == 1
    alone = [ask("c:", "a", name="0"), ask("cb", "a", name="1")]
    values = [response.logprobs[0] for response in engine.answer(alone)]
    (answered,) = engine.answer([request])
    assert list(answered.logprobs) == pytest.approx(values, abs=1e-5)
