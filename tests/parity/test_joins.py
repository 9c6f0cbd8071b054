"""Choices whose text merges with the end of their context: lm-eval's tokens and values, and ours.

lm-eval 0.4.13 encodes context and choice together and cuts the ids at the length of the context's.
Where a token spans the join it stops if nothing is left (issues 1053, 1297 and 3336 of
EleutherAI/lm-evaluation-harness), and scores what is left, a part of the choice, if something is.
It encodes both apart only where it must (encoder-decoder models); its pull request 4055 does so
here. The values are its own for these ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from typing import NamedTuple

import pytest

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models import load_model
from pytest_llmeval.models.hf.encoding import Encoder

TOLERANCE = 1e-3

CLEAN = [
    ("Answer:", (" A", " B")),
    ("The sky is", (" blue", " deep and blue", "\nred")),
    ("two plus two is ", ("four", "five")),
    ("What is <|im_end|>?\nAnswer:", (" a token", " nothing")),
    ("北京是中国的", ("首都", "城市")),
]
NOTHING_LEFT = [
    ("Ans", ("wer",)),
    ("hello wor", ("ld",)),
    ("It ends with <|im_", ("end|>",)),
]
PART_LEFT = [
    ("Ans", ("werable", "wer is")),
    ("hello wor", ("lds",)),
    ("The sky is blu", ("ebird",)),
]


class Joined(NamedTuple):
    """A context and a choice by both tools. ``theirs``: lm-eval's ids of the choice."""

    context: str
    choice: str
    ours: tuple[int, ...]
    theirs: list[int]
    alone: list[int]
    logprob: float
    forced: float


def harness(weights: Path) -> Any:
    models = pytest.importorskip("lm_eval.models.huggingface", reason="tox -e parity")
    return models.HFLM(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)


def joined(lm: Any, weights: Path, cases: list[tuple[str, tuple[str, ...]]]) -> list[Joined]:
    requests = [
        Request(str(number), Prompt("", (), context, ""), choices)
        for number, (context, choices) in enumerate(cases)
    ]
    model = load_model(f"hf:{weights}?device=cpu")
    answers = {response.id: response for response in model.answer(requests)}
    questions, refused = Encoder(lm.tokenizer, None).encode_questions(requests)
    assert not refused
    joins = []
    for request, question in zip(requests, questions, strict=True):
        response = answers[request.id]
        assert response.error is None
        context = request.prompt.text
        for choice, row, start, logprob in zip(
            request.choices, question.rows, question.starts, response.logprobs, strict=True
        ):
            before, theirs = lm._encode_pair(context, choice)
            assert list(row[:start]) == before
            # lm-eval's own value for our ids.
            encoded = ((context, choice), list(row[:start]), list(row[start:]))
            ((forced, _),) = lm._loglikelihood_tokens([encoded], disable_tqdm=True)
            alone = lm.tok_encode(choice, add_special_tokens=False)
            joins.append(
                Joined(context, choice, row[start:], theirs, alone, logprob, float(forced))
            )
    return joins


@pytest.fixture(scope="module")
def lm(weights: Path) -> Any:
    return harness(weights)


def test_where_no_token_spans_the_join_tokens_and_values_are_equal(lm: Any, weights: Path) -> None:
    for join in joined(lm, weights, CLEAN):
        assert list(join.ours) == join.theirs, join
        assert join.logprob == pytest.approx(join.forced, abs=TOLERANCE)


def test_where_nothing_is_left_the_choice_is_encoded_alone(lm: Any, weights: Path) -> None:
    for join in joined(lm, weights, NOTHING_LEFT):
        assert join.theirs == [], join
        with pytest.raises(AssertionError):
            lm._loglikelihood_tokens([(("", ""), [1], join.theirs)], disable_tqdm=True)
        assert list(join.ours) == join.alone, join
        assert join.logprob == pytest.approx(join.forced, abs=TOLERANCE)


def test_where_a_part_is_left_all_of_the_choice_is_scored(lm: Any, weights: Path) -> None:
    """The one difference: lm-eval leaves out the beginning of these choices."""
    for join in joined(lm, weights, PART_LEFT):
        part = lm.tokenizer.decode(join.theirs)
        assert join.choice.endswith(part)
        assert part != join.choice
        assert list(join.ours) == join.alone, join
        assert join.logprob == pytest.approx(join.forced, abs=TOLERANCE)


def test_with_and_without_merging_in_one_call(lm: Any, weights: Path) -> None:
    """In a batch with others, whatever they are, a choice has the value that it has alone."""
    mixed = [
        (context, choices)
        for cases in zip(CLEAN, NOTHING_LEFT + PART_LEFT, strict=False)
        for context, choices in cases
    ]
    mixed.append(("Ans", ("wer", " B", "werable", "!")))
    for join in joined(lm, weights, mixed):
        assert join.logprob == pytest.approx(join.forced, abs=TOLERANCE), join


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a tokenizer of SentencePiece's kind: a blank is put before every text."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers import models
    from tokenizers import pre_tokenizers

    letters = ["<unk>", "<s>", "</s>", *"▁Answer:()Bblu,"]
    merges = [("(", "A"), ("l", "u"), ("lu", "e"), ("▁", "A"), ("▁", "b"), ("▁b", "lue")]
    tokens = dict.fromkeys([*letters, *("".join(pair) for pair in merges)])
    numbers = {token: number for number, token in enumerate(tokens)}
    raw = Tokenizer(models.BPE(numbers, merges, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.2)
    folder = tmp_path_factory.mktemp("weights") / "pieces"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_no_blank_is_put_before_a_choice(sentencepiece: Path) -> None:
    """Alone, as lm-eval encodes an encoder-decoder model's targets, each would begin with one."""
    lm = harness(sentencepiece)
    cases = [("Answer: (", ("A", "B", "A)")), ("b", ("lue", " blue")), ("blu", ("e", ","))]
    joins = joined(lm, sentencepiece, cases)
    spanned = 0
    for join in joins:
        assert join.logprob == pytest.approx(join.forced, abs=TOLERANCE)
        words = "".join(lm.tokenizer.convert_ids_to_tokens(list(join.ours)))
        assert words == join.choice.replace(" ", "▁"), join
        spanned += list(join.ours) != join.theirs
    assert 0 < spanned < len(joins)
