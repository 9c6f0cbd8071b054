"""Order tests that are not possible, measure nothing, or meet a model that cannot answer them."""

from __future__ import annotations

import pytest

from support import order_project
from support.order_project import gates
from support.paths import DATA

OPTION = "--llm-contamination=option-order"
ITEM = "--llm-contamination=item-order"
GATE = "[benchmarks.bench.contamination]\n"


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ("RANDOM", ["--llm-contamination=option-ordr"], "unknown 'option-ordr'; did you mean"),
        ("RANDOM", [ITEM, "--llm-limit=30"], "in the order of the file: leave out --llm-limit"),
        ("RANDOM", [OPTION, "--llm-limit=12"], "12 items with different options; at least 20"),
        ("RANDOM", [OPTION, "--llm-sequential"], "needs all items: leave out --llm-sequential"),
        ("NONE", [OPTION], "option-order of bench: the items have no options"),
    ],
)
def test_what_cannot_be_tested_is_one_line(orders, options, arguments, message):
    project = orders()
    text = order_project.benchmark(getattr(order_project, options))
    if options == "NONE":
        text = text.replace("number % 4", '"x"').replace('("A", "B", "C", "D")', "()")
        text = text.replace('scorer="letter"', 'scorer="exact_match", ask="text"')
    (project.path / "test_bench.py").write_text(text)
    result = project.run(*arguments)
    assert result.ret == 4
    assert message in result.stderr.str()
    assert not project.requested


def test_the_packaged_benchmark_is_sorted_by_subject(project):
    (project.path / "conftest.py").unlink()
    (project.path / "test_bench.py").write_text(
        "import pytest\nfrom pytest_llmeval.catalog import starter\n\n"
        "@pytest.mark.llmeval(starter())\ndef test_starter(answer):\n    assert answer.correct\n"
    )
    result = project.run("--llm-model=demo", ITEM)
    assert result.ret == 4
    message = "item-order of starter: its items are sorted or grouped in the file (neighbours have"
    assert message in result.stderr.str()
    # With another possible test only its own gate is refused.
    project.thresholds("[benchmarks.starter.contamination]\nitem_order = 0.01")
    result = project.run("--llm-model=demo", f"{ITEM},option-order")
    assert result.ret == 4
    assert "benchmarks.starter.contamination.item_order: not possible: its items" in (
        result.stderr.str()
    )


def test_endpoints_without_echo_are_refused(project):
    (project.path / "conftest.py").unlink()
    (project.path / "test_bench.py").write_text(order_project.benchmark())
    for spec in ("openai:x", "openai:x?choices=top_logprobs"):
        result = project.run(f"--llm-model={spec}", "--llm-base-url=http://127.0.0.1:9/v1", OPTION)
        assert result.ret == 4
        assert "needs the log-likelihoods of whole texts" in result.stderr.str()
        assert "add choices=echo to its spec" in result.stderr.str()


@pytest.mark.skipif(not (DATA / "mmlu").is_dir(), reason="no public data (LLMEVAL_DATA)")
def test_mmlu_without_a_reference_is_undecided_and_with_one_judged(project):
    test = (
        "import pytest\nfrom pytest_llmeval.catalog import mmlu\n\n"
        "@pytest.mark.llmeval(mmlu(subjects=['astronomy', 'econometrics']))\n"
        "def test_mmlu(answer):\n    assert answer.correct\n"
    )
    model = order_project.model("NAME").replace("from test_bench import items", "")
    model = model.replace("int(request.id[-2:]) % 4", "0")
    (project.path / "test_bench.py").write_text(test)
    (project.path / "conftest.py").write_text(model.replace("NAME'", "base'"))
    project.thresholds("[benchmarks.mmlu.contamination]\noption_order = 0.01")
    result = project.run(OPTION, f"--llm-data={DATA}", "--llm-runs=base")
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert "UNDECIDED mmlu::contamination::option_order" in text
    assert "the published orders are not random" in text
    (base,) = (project.path / "base").glob("2*/")
    project.thresholds(f'[benchmarks.mmlu.contamination]\noption_order.against = "{base}"')
    (project.path / "conftest.py").write_text(model.replace("NAME'", "next'"))
    assert project.run(OPTION, f"--llm-data={DATA}").ret == 0
    gate = gates(project)["mmlu::contamination::option_order"]
    assert (gate["status"], gate["max"]) == ("pass", 0.55)
    assert 100 < gate["n"] < 266  # items with a natural order are left out


def test_errors_of_the_test_are_not_errors_of_the_items(orders):
    project = orders(
        failing="if request.arm: yield Response(request.id, logprobs=(-1.0,) * 4, arm=request.arm); continue"
    )
    project.thresholds(GATE + "option_order = 0.01\n[benchmarks.bench]\naccuracy = 0.9")
    assert project.run(OPTION).ret == 1
    by_gate = gates(project)
    assert by_gate["bench::accuracy"]["status"] == "pass"
    gate = by_gate["bench::contamination::option_order"]
    assert gate["status"] == "fail"
    assert gate["reason"] == "incomplete: 40 errors: 4 log-likelihoods for 8 orders"


def test_equal_likelihoods_are_not_a_measurement(orders):
    project = orders(
        failing="if request.arm: yield Response(request.id, logprobs=(-1.0,) * len(request.choices), arm=request.arm); continue"
    )
    project.thresholds(GATE + "option_order = 0.01")
    assert project.run(OPTION).ret == 1
    gate = gates(project)["bench::contamination::option_order"]
    assert gate["status"] == "undecided"
    assert "all orders have the same log-likelihood in 40 of 40" in gate["reason"]


def test_a_text_only_model_has_no_likelihoods(orders):
    project = orders(failing="yield Response(request.id, text='A'); continue")
    file = project.path / "conftest.py"
    file.write_text(file.read_text().replace('frozenset({"choices"})', 'frozenset({"text"})'))
    project.thresholds(GATE + "option_order = 0.01")
    project.run(OPTION)
    gate = gates(project)["bench::contamination::option_order"]
    assert gate["reason"] == "incomplete: 40 errors: the model returns only text"
