"""Templates with complete prompts, protocols without a generated variant, labels of options."""

from __future__ import annotations

from dataclasses import fields
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Benchmark
from pytest_llmeval import Dataset
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval import Template
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import check_dataset
from pytest_llmeval.core import option_index
from pytest_llmeval.core import option_label
from pytest_llmeval.core import option_labels
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.evaluation.planner import variants
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.recorder import answerable_protocol
from pytest_llmeval.evaluation.suite import Suite
from pytest_llmeval.evaluation.suite import choose_protocol
from pytest_llmeval.models.custom import FunctionModel

ITEMS = tuple(Item(f"i-{n}", "s", f"Q{n}?", n % 2, ("yes", "no")) for n in range(4))
TEXTS = {item.id: f"Rendered elsewhere: {item.question}" for item in ITEMS}


def settings(**values: object) -> Settings:
    empty: dict[str, object] = {field.name: None for field in fields(Settings)}
    return Settings(
        **{
            **empty,
            "samples": 1,
            "seed": 0,
            "decoding": {},
            "debias": (),
            "contamination": (),
            **values,
        }
    )  # type: ignore[arg-type]


def template(texts: dict[str, str]) -> Template:
    return Template(
        "complete",
        description=lambda subject: "",
        question=lambda item: item.question,
        choices=lambda item: item.options,
        prompt=lambda item: Prompt("", (), texts[item.id], delimiter=""),
    )


PROTOCOL = Protocol("p", template(TEXTS), scorer="likelihood", choices_only=True)
DATASET = Dataset(ITEMS)


def test_the_request_has_the_prompt_as_it_is() -> None:
    request = PROTOCOL.request(ITEMS[1], ())
    assert request.prompt.text == "Rendered elsewhere: Q1?"
    assert request.choices == ("yes", "no")


@given(changed=st.sampled_from(ITEMS), suffix=st.text(max_size=3))
def test_every_prompt_is_in_the_fingerprint(changed: Item, suffix: str) -> None:
    texts = {**TEXTS, changed.id: TEXTS[changed.id] + suffix}
    other = replace(PROTOCOL, template=template(texts)).bound_to(DATASET)
    assert (fingerprint(PROTOCOL.bound_to(DATASET)) == fingerprint(other)) == (not suffix)


def test_the_order_of_items_does_not_change_the_fingerprint() -> None:
    turned = Dataset(ITEMS[::-1])
    assert fingerprint(PROTOCOL.bound_to(DATASET)) == fingerprint(PROTOCOL.bound_to(turned))


def test_settings_of_another_tool_are_in_the_fingerprint() -> None:
    other = replace(PROTOCOL, origin={"tool": "1.0", "config": {"shots": 5}})
    assert fingerprint(other) != fingerprint(PROTOCOL)
    assert protocol_content(other)["origin"]["config"] == {"shots": 5}
    assert "origin" not in protocol_content(PROTOCOL)


def test_a_template_that_fails_is_an_error_of_its_item() -> None:
    broken = replace(PROTOCOL, template=template({"i-0": "only this"}))
    assert broken.bound_to(DATASET).prompts_used


def test_shots_and_chat_of_complete_prompts_are_fixed() -> None:
    with pytest.raises(ConfigError, match="shots = 5, but template 'complete' renders complete"):
        replace(PROTOCOL, shots=5)
    with pytest.raises(ConfigError, match="protocol 'p' has no chat form"):
        PROTOCOL.with_chat()
    benchmark = Benchmark("b", lambda data: DATASET, (PROTOCOL,))
    with pytest.raises(ConfigError, match="'b': --llm-shots cannot change its prompts"):
        choose_protocol(benchmark, None, settings(shots=3))


def body(answer: object) -> None:
    assert answer


def test_options_of_complete_prompts_are_not_reordered() -> None:
    benchmark = Benchmark("b", lambda data: DATASET, (PROTOCOL,))
    with pytest.raises(ConfigError, match=r"t: --llm-permutations .* renders complete prompts"):
        Suite(settings(permutations="cyclic")).add("t", benchmark, None, body)
    assert Suite(settings()).add("t", benchmark, None, body).items == ITEMS


def test_a_protocol_may_refuse_a_generated_letter() -> None:
    model = FunctionModel(lambda prompt: "A")
    with pytest.raises(ConfigError, match="protocol 'p' compares log-likelihoods of choices"):
        PROTOCOL.with_generation()
    with pytest.raises(UnanswerableError, match="returns only text; protocol 'p' compares"):
        answerable_protocol(PROTOCOL, model)
    assert len(variants(PROTOCOL)) == 1
    convertible = Protocol("q", replace(PROTOCOL.template, prompt=None), scorer="letter")
    assert answerable_protocol(convertible, model).ask == "text"


def test_the_system_text_is_kept_as_it_is_where_a_prompt_wants_it() -> None:
    prompt = Prompt("Be brief.\n\n", (), "Q?")
    assert prompt.messages()[0] == {"role": "system", "content": "Be brief."}
    kept = replace(prompt, keep_description=True)
    assert kept.messages()[0] == {"role": "system", "content": "Be brief.\n\n"}
    assert kept.text == prompt.text


@given(st.integers(0, 100_000))
def test_labels_and_indices_are_inverse(index: int) -> None:
    assert option_index(option_label(index)) == index


@given(st.text(alphabet=LABELS, min_size=1, max_size=4))
def test_every_text_of_letters_is_a_label(text: str) -> None:
    index = option_index(text)
    assert index is not None
    assert option_label(index) == text


def test_the_first_labels_are_letters() -> None:
    assert option_labels(28) == (*LABELS, "AA", "AB")
    assert [option_index(text) for text in ("", "a", "4", "A B", "Z")] == [None] * 4 + [25]


def test_an_item_may_have_any_number_of_options_above_one() -> None:
    many = Item("many", "s", "Q?", 70, tuple(map(str, range(151))))
    check_dataset("b", Dataset((many,)))
    assert many.gold_label == "BS"
    with pytest.raises(ConfigError, match="one option; at least two were expected"):
        check_dataset("b", Dataset((replace(many, gold=0, options=("a",)),)))


def test_options_beyond_the_letters_are_not_reordered() -> None:
    many = Item("many", "s", "Q?", 0, tuple(map(str, range(30))))
    plain = replace(PROTOCOL, template=replace(PROTOCOL.template, prompt=None))
    benchmark = Benchmark("b", lambda data: Dataset((many,)), (plain,))
    with pytest.raises(ConfigError, match="reorder up to 26 options, and many has 30"):
        Suite(settings(permutations="cyclic")).add("t", benchmark, None, body)
