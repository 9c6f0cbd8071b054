"""Replicas that are killed, hang, raise or differ: no answer is lost or doubled."""

from __future__ import annotations

import signal
from functools import partial

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.ray import dispatcher
from support.ray_models import Different
from support.ray_models import Faulty
from support.ray_models import cannot_load

IDS = [f"item-{number}" for number in range(120)]


def batch(ids=IDS):
    return [Request(name, Prompt("", (), name)) for name in ids]


def check(responses: list[Response], errors=()) -> None:
    """Every request has one response, which is its own, or an error where one is expected."""
    assert sorted(response.id for response in responses) == sorted(IDS)
    assert {response.id for response in responses if response.error} == set(errors)
    assert all(response.text == response.id.upper() for response in responses if not response.error)


def test_two_replicas_answer_as_one_model_does(start):
    model = start(Faulty)
    alone = Faulty()
    assert (model.name, model.fingerprint, model.asks) == (
        alone.name,
        alone.fingerprint,
        alone.asks,
    )
    # Two chunks at a time, as the evaluator sends them.
    first, second = model.answer(batch(IDS[:70])), model.answer(batch(IDS[70:]))
    check([*first, *second])
    assert model.warnings == []
    description = model.description()
    assert sum(place["started"] for place in description["places"]) == 2
    assert model.activity.endswith("of 2 replicas busy")


def test_a_killed_replica_costs_no_answer(start, tmp_path):
    model = start(partial(Faulty, signal=signal.SIGKILL, once=str(tmp_path / "once")))
    check(list(model.answer(batch())))
    assert model.description()["lost"] == 1
    assert "replicas lost: 1" in model.warnings[0]


def test_a_poison_item_costs_only_itself(start):
    model = start(partial(Faulty, poison="item-33"))
    responses = list(model.answer(batch()))
    check(responses, ["item-33"])
    (error,) = (response.error for response in responses if response.error)
    assert "replicas were lost while they answered it" in error
    assert model.description()["lost"] <= 3


def test_an_exception_costs_only_the_item_that_raises_it(start):
    model = start(partial(Faulty, raising="item-33"))
    responses = list(model.answer(batch()))
    check(responses, ["item-33"])
    assert [response.error for response in responses if response.error] == [
        "ValueError: cannot answer item-33"
    ]
    assert model.description()["lost"] == 0


def test_a_hanging_replica_does_not_stop_the_run(start, tmp_path):
    model = start(partial(Faulty, signal=signal.SIGSTOP, once=str(tmp_path / "once")))
    check(list(model.answer(batch())))


def test_a_hanging_replica_is_replaced_if_there_is_no_other(start, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatcher, "SILENCE_SECONDS", 1.5)
    model = start(partial(Faulty, signal=signal.SIGSTOP, once=str(tmp_path / "once")), replicas=1)
    check(list(model.answer(batch())))
    assert model.description()["lost"] == 1


def test_a_removed_node_costs_no_answer(nodes, start):
    node = nodes.add_node(num_cpus=1, object_store_memory=80_000_000)
    try:
        nodes.wait_for_nodes()
        model = start(partial(Faulty, seconds=0.05), replicas=3)
        answers = model.answer(batch())
        responses = [next(answers) for _ in range(30)]
    finally:
        nodes.remove_node(node, allow_graceful=False)
    check([*responses, *answers])


def test_damaged_weights_end_the_run(start):
    model = start(partial(Faulty, broken="item-33"))
    with pytest.raises(ModelError, match=r"^replica on .*: the weights are damaged$"):
        list(model.answer(batch()))
    with pytest.raises(ModelError, match="the weights are damaged"):
        list(model.answer(batch()))


def test_replicas_end_when_idle_and_start_again(start):
    model = start(Faulty)
    check(list(model.answer(batch())))
    model.release()
    check(list(model.answer(batch())))
    assert sum(place["started"] for place in model.description()["places"]) > 2


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (
            cannot_load,
            {},
            r"replica on .* cannot open the model: OSError: weights.bin: no such file",
        ),
        (Different, {}, r"replicas differ: model fingerprint, \d+ on .*, \d+ on .*"),
        ("hf:/no/such/folder", {}, r"replica on .*: no such folder /no/such/folder"),
        ("hf:a/b?device=cuda:1", {}, r"write device=cuda"),
        ("hf:a/b", {"gpus": 2}, r"with 2 GPUs each: the cluster has room for 0"),
        ("hf:a/b?devices=4", {"gpus": 2}, r"hf:a/b\?devices=4 uses 4; leave out one of the two"),
        (Faulty, {"replicas": 9}, r"--llm-replicas 9: the cluster has \d CPUs, one for each"),
        (Faulty, {"replicas": 2, "gpus": 1}, r"has room for 1 \(1 GPUs, at most 1 on a node\)"),
    ],
)
def test_a_mistake_is_one_line(start, source, options, message):
    with pytest.raises(ConfigError, match=message) as raised:
        start(source, **options)
    assert "\n" not in str(raised.value)


def test_no_free_gpu_is_one_line(start):
    start(Faulty, replicas=1, gpus=1)
    with pytest.raises(ConfigError, match="0 of 1 GPUs are free"):
        start(Faulty, replicas=1, gpus=1)
