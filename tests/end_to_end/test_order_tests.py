"""``--llm-contamination`` end to end: a model that has read a benchmark, and one that has not."""

from __future__ import annotations

import json

import pytest

from support import order_project
from support.endpoint_server import serve
from support.order_project import entry
from support.order_project import gates

OPTION = "--llm-contamination=option-order"
ITEM = "--llm-contamination=item-order"
GATE = "[benchmarks.bench.contamination]\n"


def records(project) -> list[dict]:
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_model_that_has_read_the_benchmark_fails(orders, workers):
    project = orders("reader", read=("options",))
    project.thresholds(GATE + "option_order = 0.01")
    result = project.run(OPTION, "-n", workers, "--llm-report=html,markdown")
    assert result.ret == 1
    for report in ("report.html", "report.md"):
        assert "published order above 100.0 % of the others" in (
            (project.run_folder / report).read_text()
        )
    gate = gates(project)["bench::contamination::option_order"]
    assert (gate["status"], gate["measured"], gate["n"]) == ("fail", 1.0, 40)
    assert gate["p_value"] == pytest.approx(8.0**-40)
    assert gate["line"] == 3
    result.stdout.fnmatch_lines(
        [
            "FAIL bench::contamination::option_order: 1.0000 (bound <= 0.5, alpha 0.01)*",
            "*published order above 100.0 % of the others, 40 items x 8 orders, p = 7.5e-37*",
        ]
    )
    assert entry(project)["p_value"] == gate["p_value"]
    assert entry(project)["groups"] == entry(project)["planned"] == 40


def test_a_fresh_model_passes_with_no_sign(orders):
    project = orders()
    project.thresholds(GATE + "option_order = 0.01")
    result = project.run(OPTION)
    assert result.ret == 0
    gate = gates(project)["bench::contamination::option_order"]
    assert gate["status"] == "pass"
    assert 0.3 < gate["measured"] < 0.7
    text = " ".join(result.stdout.str().split())
    assert "no sign of it, which is no proof; sees a mean rank from 0.664; blind to" in text
    assert "clean" not in gate["reason"]


def test_the_result_itself_is_that_of_a_plain_run(orders):
    project = orders()
    project.run()
    plain = project.metrics()
    project.run(OPTION, "--llm-runs=tested")
    (folder,) = (project.path / "tested").glob("*/")
    (tested,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert tested == plain


def test_likelihoods_are_one_record_an_item_and_are_resumed(orders):
    project = orders("reader", read=("options",))
    project.run(OPTION)
    assert len(project.requested) == 80
    first = entry(project)
    stored = [record for record in records(project) if record.get("arm")]
    assert len(stored) == 40
    assert {len(record["logprobs"]) for record in stored} == {8}
    assert {record["outcome"] for record in stored} == {"unparsed"}
    # Half of the records are lost.
    file = project.run_folder / "records.jsonl"
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[:50]))
    project.run(OPTION, "--llm-resume")
    assert len(project.requested) == 80 + 30
    assert len(list((project.path / "runs").glob("*/"))) == 1
    assert entry(project) == first
    project.run(OPTION, "--llm-resume")
    assert len(project.requested) == 110


def test_another_seed_is_another_plan(orders):
    project = orders()
    project.run(OPTION)
    project.run(OPTION, "--llm-resume", "--llm-seed=1")
    assert len(project.requested) == 160


def test_items_in_the_order_of_the_file(orders):
    project = orders("reader", read=("items",))
    project.thresholds(GATE + "item_order = 0.01\noption_order = 0.01")
    result = project.run(f"{ITEM},option-order")
    assert result.ret == 1
    by_gate = gates(project)
    items = by_gate["bench::contamination::item_order"]
    assert (items["status"], items["n"]) == ("fail", 8)
    # Two tests of a file: the smaller p value counts twice.
    assert items["p_value"] == pytest.approx(2 * 6.0**-8)
    assert by_gate["bench::contamination::option_order"]["status"] == "pass"
    assert "(Holm 1.2e-06)" in items["reason"]
    # 40 items, 8 shards, 40 items again.
    assert len(project.requested) == 88


def test_sorted_options_need_a_reference(orders):
    """A model that likes ascending numbers is no evidence; the same taste in a reference is subtracted."""
    taste = "3.0 * (text.split()[1::2] == sorted(text.split()[1::2]))"
    project = orders("base", order_project.ASCENDING, taste=taste)
    project.thresholds(GATE + "option_order = 0.01")
    result = project.run(OPTION, "--llm-runs=base")
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert "UNDECIDED bench::contamination::option_order" in text
    assert "the published orders are not random (numbers ascend, z = 1" in text
    assert "name a run to compare with (against = …)" in text
    (base,) = (project.path / "base").glob("2*/")
    value = json.loads((base / "metrics.json").read_text())["contamination"][0]
    assert value["p_value"] is None
    assert value["mean_rank"] == 1.0
    # Items of sorted numbers are left out, and here there are no others.
    project.thresholds(GATE + f'option_order.against = "{base}"')
    project = orders("candidate", order_project.ASCENDING, taste=taste)
    assert project.run(OPTION).ret == 1
    reason = gates(project)["bench::contamination::option_order"]["reason"]
    assert reason.startswith("0 items without an order by content; at least 20 are needed")


SHORT_FIRST = "sorted(generator.sample([w * n for n, w in enumerate(words, 1)], 4), key=len)"


@pytest.fixture
def compared(orders):
    """Options by length, a base run and its folder; a function that runs a candidate against it."""
    taste = "3.0 * (sorted(text.splitlines(), key=len) == text.splitlines())"
    project = orders("base", SHORT_FIRST, taste=taste)
    assert project.run(OPTION, "--llm-runs=base").ret == 0
    (base,) = (project.path / "base").glob("2*/")

    def run(*arguments, name="candidate", against=str(base), **of_model):
        project.thresholds(GATE + f'option_order.against = "{against}"')
        orders(name, SHORT_FIRST, taste=taste, **of_model)
        return project, project.run(OPTION, *arguments)

    run.base = base
    return run


def test_against_a_reference_only_the_difference_counts(compared):
    project, result = compared()
    assert result.ret == 0, result.stdout.str()
    gate = gates(project)["bench::contamination::option_order"]
    assert (gate["status"], gate["max"]) == ("pass", 0.55)
    assert gate["measured"] < 0.7
    assert "texts that the reference has read" in gate["reason"]
    project, result = compared(name="reader", read=("options",))
    assert result.ret == 1
    gate = gates(project)["bench::contamination::option_order"]
    assert (gate["status"], gate["bound"]) == ("fail", "<= 0.55, alpha 0.01")
    assert f"of the others against {compared.base}" in gate["reason"]
    again = project.pytester.run("llmeval", "gate", str(project.run_folder))
    assert again.ret == 1
    assert "published order above" in again.stdout.str()


def test_a_baseline_file_is_a_reference(compared):
    project, _ = compared()
    saved = project.pytester.run("llmeval", "baseline", str(compared.base), "base")
    assert saved.ret == 0, saved.stderr.str()
    from_run = gates(project)["bench::contamination::option_order"]["measured"]
    project, result = compared(against="base")
    assert result.ret == 0
    assert gates(project)["bench::contamination::option_order"]["measured"] == from_run


def test_a_reference_with_another_seed_is_refused(compared):
    _, result = compared("--llm-seed=7")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*thresholds.toml: benchmarks.bench.contamination.option_order.against: *"]
    )
    assert "not comparable: seed 7 here, 0 there" in result.stderr.str()


def test_a_missing_reference_is_one_line(compared):
    _, result = compared(against="nothing")
    assert result.ret == 4
    assert "option_order.against: no run folder, baseline file" in result.stderr.str()


def test_a_model_is_not_its_own_reference(compared):
    project, result = compared(name="base")
    assert result.ret == 1
    gate = gates(project)["bench::contamination::option_order"]
    assert gate["status"] == "undecided"
    assert "has the same weights" in gate["reason"]


def test_a_part_of_the_items_is_undecided_and_a_random_sample_is_not(orders):
    project = orders()
    project.thresholds(GATE + "option_order = 0.01")
    project.run(OPTION, "-k", "item-0 or item-1 or item-2")
    gate = gates(project)["bench::contamination::option_order"]
    assert (gate["status"], gate["reason"]) == ("undecided", "only 30 of 40 were measured")
    project.run(OPTION, "--llm-limit=30")
    gate = gates(project)["bench::contamination::option_order"]
    assert (gate["status"], gate["n"]) == ("pass", 30)


def test_a_gate_without_its_test_is_undecided(orders):
    project = orders()
    project.thresholds(GATE + "item_order = 0.01")
    assert project.run().ret == 1
    gate = gates(project)["bench::contamination::item_order"]
    assert gate["reason"] == "not measured: run it with --llm-contamination item-order"


def test_two_tests_of_a_benchmark_share_its_order_test(orders):
    project = orders("reader", read=("options",))
    text = (project.path / "test_bench.py").read_text()
    text = text.replace(
        '(Protocol("plain", TEMPLATE, scorer="letter"),)',
        '(Protocol("plain", TEMPLATE, scorer="letter"),'
        ' Protocol("other", TEMPLATE, scorer="likelihood"))',
    )
    text += (
        '\n@pytest.mark.llmeval(BENCH, protocol="other")\n'
        "def test_other(answer):\n    assert answer.correct\n"
    )
    (project.path / "test_bench.py").write_text(text)
    project.run(OPTION)
    assert len(project.requested) == 120
    assert entry(project)["groups"] == 40
    project.run(OPTION, "-k", "test_other")
    assert entry(project)["groups"] == 40


def test_a_skipped_test_keeps_its_likelihoods(orders):
    project = orders()
    text = (project.path / "test_bench.py").read_text()
    skip = "    if answer.item.id == 'item-03':\n        pytest.skip('not this one')\n    assert"
    (project.path / "test_bench.py").write_text(text.replace("    assert", skip))
    project.run(OPTION)
    assert project.metrics()["answered"] == 39
    assert entry(project)["groups"] == 40


def test_shards_are_merged(orders):
    project = orders("reader", read=("items", "options"))
    project.thresholds(GATE + "option_order = 0.01\nitem_order = 0.01")
    for part in (1, 2):
        assert project.run(f"{ITEM},option-order", f"--llm-shard={part}/2").ret == 0
    folders = [str(folder) for folder in sorted((project.path / "runs").glob("2*/"))]
    merged = project.pytester.run("llmeval", "merge", *folders, "--out", "whole")
    assert merged.ret == 0, merged.stderr.str()
    judged = project.pytester.run("llmeval", "gate", "whole")
    assert judged.ret == 1
    assert judged.stdout.str().count("published order above 100.0 % of the others") >= 2


def test_a_dry_run_counts_the_requests(project):
    (project.path / "conftest.py").unlink()
    (project.path / "test_bench.py").write_text(order_project.benchmark())
    result = project.run("--llm-model=demo", f"{ITEM},option-order", "--llm-dry-run")
    assert result.ret == 0
    result.stdout.re_match_lines([r".*bench\[letter\] +40 +88 .*"])


TWIN = """
def rewritten(data_dir):
    return Dataset(items())

SECOND = Benchmark("rewritten", rewritten, BENCH.protocols)

@pytest.mark.llmeval(SECOND)
def test_rewritten(answer):
    assert answer.correct
"""


def test_a_twin_is_compared_item_by_item(orders):
    """The model knows the original by heart and half of the rewritten items."""
    project = orders()
    file = project.path / "test_bench.py"
    file.write_text(file.read_text() + TWIN)
    branch = "if request.benchmark == 'rewritten' and int(request.id[-2:]) % 2: yield Response("
    branch += "request.id, logprobs=(-1.0, -2.0, -2.0, -2.0)); continue"
    (project.path / "conftest.py").write_text(order_project.model(failing=branch))
    project.thresholds('[benchmarks.bench.twin]\nof = "rewritten"\nmax_gap = 0.1')
    result = project.run()
    assert result.ret == 1
    gate = gates(project)["bench::twin::max_gap"]
    assert (gate["status"], gate["measured"], gate["n"]) == ("fail", 0.5, 40)
    assert gate["p_value"] == pytest.approx(0.5**20)
    again = project.pytester.run("llmeval", "gate", str(project.run_folder))
    assert again.ret == 1
    assert "20 of 40 items count for the original" in " ".join(again.stdout.str().split())
    # Another model with the same gap is a reference, the model itself is none.
    project.thresholds(
        '[benchmarks.bench.twin]\nof = "rewritten"\nmax_gap = 0.1\n'
        f'against = "{project.run_folder}"'
    )
    assert project.run().ret == 1
    assert "has the same weights" in gates(project)["bench::twin::max_gap"]["reason"]
    (project.path / "conftest.py").write_text(order_project.model("next", failing=branch))
    assert project.run().ret == 0
    assert gates(project)["bench::twin::max_gap"]["measured"] == 0.0
    project.thresholds('[benchmarks.bench.twin]\nof = "rewriten"\nmax_gap = 0.1')
    result = project.run()
    assert result.ret == 4
    assert "twin.of: unknown benchmark 'rewriten'; did you mean 'rewritten'?" in result.stderr.str()


def test_an_endpoint_that_echoes(project, monkeypatch):
    """The likelihoods are those of whole texts, and the cache has them."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    (project.path / "conftest.py").unlink()
    (project.path / "test_bench.py").write_text(order_project.benchmark())
    with serve() as server:
        spec = f"--llm-model=openai:stand-in?base_url={server.url}&choices=echo"
        arguments = (spec, OPTION, "--llm-cache=cache.sqlite")
        assert project.run(*arguments).ret == 0
        first, sent = entry(project), len(server.arrivals)
        assert (first["groups"], first["errors"], first["problem"]) == (40, 0, None)
        assert project.run(*arguments, "--llm-runs=again").ret == 0
        assert len(server.arrivals) == sent >= 80
    (folder,) = (project.path / "again").glob("2*/")
    assert json.loads((folder / "metrics.json").read_text())["contamination"] == [first]
