"""``--llm-report html`` through the whole plugin."""

from __future__ import annotations

import pytest

from pytest_llmeval.cli import main
from support.page_blocks import block


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_the_run_folder_has_a_report_with_prompts(project, workers):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.9\n")
    result = project.run("--llm-report=html", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["report: runs/*/report.html"])
    page = (project.run_folder / "report.html").read_text()
    assert "1 of 1 gate failed" in page
    (index,) = block(page, "data-index")
    metrics = project.metrics()
    assert index["outcome"].count("c") == metrics["correct"] == 6
    assert len(index["ids"]) == metrics["answered"] == 9
    details = block(page, "data-0-0")
    assert [entry["prompt"]["question"] for entry in details] == [
        f"{subject} question {row}?"
        for subject, size in (("art", 2), ("law", 3), ("zoo", 4))
        for row in range(size)
    ]
    assert details[0]["samples"][0]["logprobs"] == [-1.0, -2.0, -3.0, -4.0]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_report_that_is_made_later_has_the_prompts_too(project, workers):
    project.run(*workers)
    folder = project.run_folder
    assert not (folder / "report.html").exists()
    assert main(["report", str(folder)]) == 0
    details = block((folder / "report.html").read_text(), "data-0-0")
    assert all(entry["prompt"]["question"].endswith("?") for entry in details)


def test_a_merged_run_has_the_prompts_of_its_shards(project):
    shards = []
    for part in ("1/2", "2/2"):
        project.run(f"--llm-shard={part}")
        shards.append(project.run_folder.rename(project.path / part.replace("/", "-")))
    assert main(["merge", *map(str, shards), "--out", "whole"]) == 0
    assert main(["report", "whole"]) == 0
    details = block((project.path / "whole/report.html").read_text(), "data-0-0")
    assert len(details) == 9
    assert all(entry["prompt"]["question"].endswith("?") for entry in details)


def test_a_baseline_is_in_the_report(project):
    project.run()
    before = project.run_folder.rename(project.path / "before")
    project.model(
        respond="""
        def respond(self, request):
            return Response(request.id, logprobs=(-1.0, -2.0, -3.0, -4.0))
        """
    )
    result = project.run("--llm-report=html", f"--llm-baseline={before}")
    assert result.ret == 0
    page = (project.run_folder / "report.html").read_text()
    (index,) = block(page, "data-index")
    assert index["flip"].count("w") == 6
    assert index["before"].count("B") == 6


def test_a_resumed_run_has_all_its_prompts(project):
    project.run("-k", "art")
    project.run("--llm-report=html")
    result = project.run("--llm-report=html", "--llm-resume")
    assert result.ret == 0
    page = (project.run_folder / "report.html").read_text()
    assert len(block(page, "data-0-0")) == 9
    assert all(entry["prompt"] for entry in block(page, "data-0-0"))


def test_an_unknown_format_is_a_usage_error_before_anything_runs(project):
    result = project.run("--llm-report=pdf")
    assert result.ret == 4
    assert project.requested == []
    assert [line for line in result.errlines if "unknown report format 'pdf'" in line]


def test_an_ini_file_may_request_reports(project):
    (project.path / "pytest.ini").write_text("[pytest]\nllm_report = html\n")
    project.run()
    assert (project.run_folder / "report.html").is_file()
