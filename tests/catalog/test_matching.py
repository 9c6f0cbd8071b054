"""The pair of protocols: alike but for labels and what reads the answer."""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.catalog.matched_protocols import GREEDY
from pytest_llmeval.catalog.matched_protocols import SAMPLED
from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.catalog.nonsenseqa import nonsenseqa
from pytest_llmeval.prompts.uniform_labels import LETTERED
from pytest_llmeval.prompts.uniform_labels import randomly_labelled


def test_names_scorers_and_decoding() -> None:
    protocols = {protocol.name: protocol for protocol in matched_protocols()}
    assert list(protocols) == ["matched", "matched_greedy", "lettered", "lettered_greedy"]
    assert protocols["matched"].scorer == "matched"
    assert protocols["lettered"].scorer == "choice"
    assert (SAMPLED.temperature, SAMPLED.top_k, SAMPLED.top_p, SAMPLED.min_p) == (0.6, 20, 0.95, 0)
    assert GREEDY.temperature == 0
    for name, greedy in (("matched", "matched_greedy"), ("lettered", "lettered_greedy")):
        assert replace(protocols[name], name=greedy, decoding=GREEDY) == protocols[greedy]
    like = {"name": "", "template": LETTERED, "scorer": "", "also": ()}
    assert replace(protocols["matched"], **like) == replace(protocols["lettered"], **like)


def test_variants() -> None:
    matched, *_, lettered = matched_protocols(shots=0, reasoning=False, embedding="minilm")
    assert (matched.scorer, matched.shots) == ("matched+minilm", 0)
    assert matched.template.name == "dashed"
    assert lettered.template is LETTERED
    labelled = matched_protocols(template=randomly_labelled())[0]
    assert labelled.template.name == "random-labels-cot"


def test_nonsenseqa_has_matched_protocols() -> None:
    names = [protocol.name for protocol in nonsenseqa().protocols]
    assert names == ["letter", "matched", "matched_greedy", "lettered", "lettered_greedy"]
