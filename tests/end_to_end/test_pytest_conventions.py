"""What pytest's users expect of any plugin: options, collection errors, folders, xdist."""

from __future__ import annotations

import tempfile

import pytest


def test_mistakes_leave_nothing_behind(project, tmp_path, monkeypatch):
    # Not that of the machine, in which other tests run sessions at the same time.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    project.thresholds("[benchmarks.bench]\nacuracy = 0.3")
    for _ in range(3):
        assert project.run("-n", "2").ret == 4
    assert not list(tmp_path.glob("llmeval-*"))


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test", "--setup-plan"])
def test_options_that_only_list_run_nothing(project, option):
    assert project.run(option).ret == 0
    assert not (project.path / "runs").exists()


def test_a_collection_error_exits_as_without_the_plugin(project):
    (project.path / "test_broken.py").write_text("import nonsense")
    assert project.run().ret == 2
    assert not (project.path / "runs").exists()


@pytest.mark.parametrize("runs", ["/proc/none", "x" * 300])
def test_runs_that_cannot_be_written(project, runs):
    result = project.run(f"--llm-runs={runs}")
    assert result.ret == 4
    assert "--llm-runs" in result.stderr.str()


def test_dist_loadfile_keeps_ordinary_files_together(project):
    (project.path / "test_unit.py").write_text(
        "import os\n\n"
        + "".join(
            f"def test_{number}():\n    open('pids.txt', 'a').write(f'{{os.getpid()}}\\n')\n\n"
            for number in range(12)
        )
    )
    assert project.run("-n", "2", "--dist=loadfile").ret == 0
    assert len(set((project.path / "pids.txt").read_text().split())) == 1


def test_dist_each_is_refused(project):
    result = project.run("-n", "2", "--dist=each")
    assert result.ret == 4
