"""``--llm-report html`` through the whole plugin."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest


def block(page: str, name: str):
    packed = re.search(f'id="{name}">([^<]*)<', page)
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_the_run_folder_has_a_report_with_prompts(project, workers):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.9\n")
    result = project.run("--llm-report=html", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["report: runs/*/report.html"])
    page = (project.run_folder / "report.html").read_text()
    assert "The gates did not pass: 1 failed" in page
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


def test_without_it_nothing_is_written_and_prompts_are_not_kept(project):
    project.run()
    assert {file.suffix for file in project.run_folder.iterdir() if file.name != ".lock"} == {
        ".json",
        ".jsonl",
    }


def test_a_baseline_is_in_the_report(project):
    project.run()
    before = project.run_folder.rename(project.path / "before")
    project.model(
        one="""
        def one(self, request):
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
    assert project.asked == []
    assert [line for line in result.errlines if "no report format 'pdf'" in line]


def test_the_ini_file_may_ask_for_it(project):
    (project.path / "pytest.ini").write_text("[pytest]\nllm_report = html\n")
    project.run()
    assert (project.run_folder / "report.html").is_file()
