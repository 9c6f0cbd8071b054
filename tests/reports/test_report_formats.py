"""``--llm-report`` as a list of formats, and the command that writes one afterwards."""

from __future__ import annotations

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.reports import registry
from pytest_llmeval.reports.registry import Format
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import read_formats
from pytest_llmeval.reports.registry import write_report
from support.report_runs import graded
from support.report_runs import store


def test_a_list_of_formats(monkeypatch):
    formats = {name: Format(name, None) for name in ("html", "other")}
    monkeypatch.setattr(registry, "FORMATS", formats)
    assert read_formats(" other,html, other,") == ("other", "html")
    assert read_formats(None) == ()


def test_an_unknown_format_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="unknown report format 'htlm'; did you mean 'html'"):
        read_formats("htlm")


def test_missing_libraries_are_reported_before_anything_runs(monkeypatch):
    absent = Format("report.html", None, needs=("no_such_module",), extra="report")
    monkeypatch.setattr(registry, "FORMATS", {"html": absent})
    with pytest.raises(ConfigError, match=r"needs no_such_module: .*'\.\[report\]'"):
        read_formats("html")


def test_a_report_that_cannot_be_written_is_reported_in_one_line(tmp_path):
    folder = store(graded(tmp_path / "run", {"art": "cw"}))
    (folder / ".report.html.tmp").mkdir()
    with pytest.raises(RunError, match="cannot write the html report"):
        write_report("html", ReportInput(folder))


def test_the_command_writes_the_report_of_a_stored_run(tmp_path, capsys):
    before = store(graded(tmp_path / "before", {"art": "cccc"}))
    after = store(graded(tmp_path / "after", {"art": "wccc"}))
    assert main(["report", str(after)]) == 0
    assert "newly wrong" not in (after / "report.html").read_text().split('id="items"')[0]
    out = tmp_path / "page.html"
    assert main(["report", str(after), "--baseline", str(before), "--out", str(out)]) == 0
    assert "1 newly wrong" in out.read_text()
    assert capsys.readouterr().out.splitlines()[1].startswith(f"wrote {out} (")


def test_mistakes_of_the_command_are_one_line(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 4
    folder = store(graded(tmp_path / "run", {"art": "cw"}))
    assert main(["report", str(folder), "--baseline", "nothing"]) == 4
    assert main(["report", str(folder), "--out", str(tmp_path / "no" / "page.html")]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "no run.json" in lines[0]
    assert "'nothing'" in lines[1]
    assert "No such file or directory" in lines[2]


def test_different_runs_are_compared_only_on_request(tmp_path, capsys):
    before, after = (graded(tmp_path / name, {"art": "cw"}) for name in ("before", "after"))
    after.manifest["results"][0]["data_hash"] = "other"
    store(before)
    store(after)
    arguments = ["report", str(after.path), "--baseline", str(before.path)]
    assert main(arguments) == 4
    assert "data '0123abcd' against 'other'" in capsys.readouterr().err
    assert main([*arguments, "--allow-mismatch"]) == 0
    assert "there is no verdict on the comparison" in (after.path / "report.html").read_text()
