"""Formats for generated answers against prompts made by the published code, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog import mgsm
from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.prompts import chain_of_thought as mgsm_prompts
from support.paths import GOLDEN_FILES

GOLDEN = GOLDEN_FILES

SUM = Item("s", "gsm8k", "Cy’s kite rises 5 m an hour. How high is it after 3 hours?\n", "15")
SUMS = (
    Item(
        "s1",
        "gsm8k",
        "Ann has 2 boxes of 6 eggs. How many eggs is that?",
        "12",
        fields={"answer": "There are 2 * 6 = <<2*6=12>>12 eggs.\n#### 12"},
    ),
    Item(
        "s2",
        "gsm8k",
        " Bo pays $1,000 twice.  How much is it? ",
        "2000",
        fields={"answer": "It is 2 * 1,000 = $<<2*1000=2000>>2,000.\n#### 2,000"},
    ),
)
CARDS = Item(
    "c",
    "card_games",
    "How many cards has a deck? ",
    4,
    ("10", "20", "30", "40", "52 cards ", "60", "70", "80", "90", "100"),
)
DEALT = (
    Item(
        "c1",
        "card_games",
        "Which suit is red?",
        1,
        ("clubs", " hearts", "spades"),
        {
            "cot": "A: Let's think step by step. Hearts are red. The answer is (B).",
            "padding": "7",
        },
    ),
    Item(
        "c2",
        "card_games",
        " Which card is highest? ",
        1,
        ("two ", "ace"),
        {
            "cot": "A: Let's think step by step. The ace is.\nThe answer is (B).",
            "padding": "8",
        },
    ),
)
GERMAN = Item("g", "de", "Wie viel ist 1.000 + 1?", "1001", fields={"language": "de"})
EXEMPLAR = Item(
    "g1",
    "de",
    "Frage: Anna hat 2 Schachteln mit 6 Eiern. Wie viele Eier sind das?",
    "12",
    fields={
        "language": "de",
        "answer": "Schritt-für-Schritt-Antwort: 2 * 6 = 12. Die Antwort lautet 12.",
    },
)


def protocol(benchmark: Benchmark, name: str) -> Protocol:
    return next(protocol for protocol in benchmark.protocols if protocol.name == name)


@pytest.mark.parametrize(
    ("benchmark", "name", "shots", "item", "pool", "file"),
    [
        pytest.param(gsm8k(), "cot", 8, SUM, SUMS, "gsm8k_cot_8shot.txt", id="cot"),
        pytest.param(gsm8k(), "lmeval_cot", 8, SUM, SUMS, "gsm8k_cot_8shot.txt", id="lmeval_cot"),
        pytest.param(gsm8k(), "zero_shot", 0, SUM, SUMS, "gsm8k_zero_shot.txt", id="zero_shot"),
        pytest.param(gsm8k(), "lmeval", 2, SUM, SUMS, "gsm8k_lmeval_2shot.txt", id="lmeval"),
        pytest.param(mmlu_pro(), "cot", 2, CARDS, DEALT, "mmlu_pro_official_2shot.txt", id="pro"),
        pytest.param(
            mmlu_pro(), "official", 2, CARDS, DEALT, "mmlu_pro_official_2shot.txt", id="official"
        ),
        pytest.param(
            mmlu_pro(), "lmeval", 2, CARDS, DEALT, "mmlu_pro_lmeval_2shot.txt", id="lmeval_pro"
        ),
        pytest.param(mgsm(), "direct", 1, GERMAN, (EXEMPLAR,), "mgsm_direct_1shot.txt", id="mgsm"),
        pytest.param(
            mgsm(), "native_cot", 1, GERMAN, (EXEMPLAR,), "mgsm_native_cot_1shot.txt", id="native"
        ),
    ],
)
def test_prompt_is_the_golden_one_byte_for_byte(
    benchmark: Benchmark, name: str, shots: int, item: Item, pool: tuple[Item, ...], file: str
) -> None:
    # Which shots are drawn has tests of its own; here the first are shown.
    selected = replace(protocol(benchmark, name), shots=shots, draw="first")
    assert selected.ask == "text"
    assert selected.render(item, pool).text.encode() == (GOLDEN / file).read_bytes()


def test_letters_of_mmlu_pro_are_compared_as_those_of_mmlu() -> None:
    request = replace(protocol(mmlu_pro(), "letter"), shots=0).request(CARDS, ())
    assert request.choices == tuple("ABCDEFGHIJ")
    assert request.prompt.text.startswith(
        "The following are multiple choice questions (with answers) about card games.\n\nHow many"
    )


@pytest.mark.parametrize("name", ["lmeval", "official", "cot"])
def test_a_question_shows_its_own_options_only(name: str) -> None:
    text = protocol(mmlu_pro(), name).render(replace(DEALT[0], fields={}), ()).question
    assert text.count("N/A") == 0
    assert "C. spades\nAnswer:" in text


@pytest.mark.parametrize(
    "language", ["bn", "de", "en", "es", "fr", "ja", "ru", "sw", "te", "th", "zh"]
)
def test_the_words_of_every_language_are_in_the_fingerprint(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = mgsm_prompts.MGSM_WORDS
    before = [protocol_content(protocol)["template"] for protocol in mgsm().protocols]
    changed = {**words, language: words[language]._replace(question="?", reasoning="!", answer=".")}
    monkeypatch.setattr(mgsm_prompts, "MGSM_WORDS", changed)
    after = [protocol_content(protocol)["template"] for protocol in mgsm().protocols]
    assert all(template != other for template, other in zip(before, after, strict=True))


def test_shots_of_lmeval_are_a_function_of_the_place_in_the_whole_set() -> None:
    """The figures are those of CPython's generator, seeded with 1234, on 100 rows."""
    pool = tuple(replace(SUMS[0], id=f"t{n}", question=f"t{n}?") for n in range(100))
    items = tuple(replace(SUM, id=f"i{n}", question=f"i{n}?") for n in range(4))
    data = Dataset(items, {"gsm8k": pool})
    bound = protocol(gsm8k(), "lmeval").bound_to(data)
    drawn = {item.id: [shot.id for shot in bound.select_shots(item, pool)] for item in items}
    assert drawn["i0"] == ["t99", "t56", "t14", "t0", "t11"]
    assert drawn["i1"] == ["t74", "t4", "t85", "t88", "t10"]
    assert len({tuple(shots) for shots in drawn.values()}) == 4
