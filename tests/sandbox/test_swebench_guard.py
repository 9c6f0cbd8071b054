"""What the guard reads in rows: files of patches as git has them, and the parts of scripts."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.sandbox.swebench.guard import PatchedFiles
from pytest_llmeval.sandbox.swebench.guard import find_guarded
from pytest_llmeval.sandbox.swebench.guard import guarded_script
from pytest_llmeval.sandbox.swebench.guard import official_script
from pytest_llmeval.sandbox.swebench.guard import patched_files
from pytest_llmeval.sandbox.swebench.guard import script_parts
from support.swebench_data import RECORDED

_FILES = ("SWE-bench_Verified_test", "SWE-bench_Lite_test", "SWE-bench_Lite_dev")


@cache
def _rows() -> list[dict[str, Any]]:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    if not RECORDED.is_dir():
        pytest.skip(f"no public data: {RECORDED} does not exist (set LLMEVAL_DATA)")
    columns = ["instance_id", "patch", "test_patch", "eval_script", "base_commit"]
    return [
        row
        for name in _FILES
        for row in parquet.read_table(
            RECORDED / "rows" / f"{name}.parquet", columns=columns
        ).to_pylist()
    ]


def _by_git(patch: str, folder: Path) -> PatchedFiles:
    """What `git apply` reads in a patch: all paths, and those that are made or go."""
    ran = subprocess.run(
        ["git", "apply", "--numstat", "--summary", "-z"],
        input=patch.encode(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    fields = ran.stdout.decode().split("\0")
    names = {field.split("\t")[2] for field in fields if field.count("\t") == 2}
    summary = fields[-1]
    created = set(re.findall(r"^ create mode \d+ (.*)$", summary, re.MULTILINE))
    return PatchedFiles(tuple(sorted(names - created)), tuple(sorted(created)))


def test_files_of_patches_are_those_of_git(tmp_path: Path) -> None:
    compared = 0
    for row in _rows()[::3]:
        for patch in (row["patch"], row["test_patch"]):
            if "\nrename from " in patch or patch.startswith('diff --git "'):
                continue  # Where git prints another form: below.
            files = patched_files(patch)
            by_git = _by_git(patch, tmp_path)
            assert (sorted(files.old), sorted(files.new)) == (
                list(by_git.old),
                list(by_git.new),
            ), row["instance_id"]
            compared += 1
    assert compared > 500


def _git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
    ran = subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)
    return ran.stdout.decode()


def test_unusual_names_and_changes(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    body = "".join(f"line {number}\n" for number in range(20))
    for name in (
        "a b.py",
        "caf\u00e9.py",
        "gone.py",
        "moved.py",
        "mode.sh",
        'quo"te.py',
        "b/x b/y",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n{body}")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    _git(tmp_path, "add", "--all")
    _git(tmp_path, "commit", "--quiet", "--message", "x")
    for name in ("a b.py", "caf\u00e9.py", 'quo"te.py', "b/x b/y"):
        (tmp_path / name).write_text(f"changed\n{body}")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "moved.py").rename(tmp_path / "new name.py")
    (tmp_path / "mode.sh").chmod(0o755)
    (tmp_path / "empty.py").unlink()
    (tmp_path / "made empty.py").write_text("")
    (tmp_path / "made.py").write_text("-- a/x\n++ b/x\ndiff --git a/no b/no\n")
    (tmp_path / "data.bin").write_bytes(bytes(reversed(range(256))))
    _git(tmp_path, "add", "--all")
    files = patched_files(_git(tmp_path, "diff", "--cached", "--binary", "--find-renames"))
    assert sorted(files.old) == sorted(
        [
            *("a b.py", "caf\u00e9.py", "gone.py", "moved.py", "mode.sh", 'quo"te.py', "b/x b/y"),
            *("empty.py", "data.bin"),
        ]
    )
    assert sorted(files.new) == ["made empty.py", "made.py", "new name.py"]


def test_no_patch_touches_no_file() -> None:
    assert patched_files("") == PatchedFiles()
    assert patched_files("no diff\n--- a/x\n+++ b/x\n") == PatchedFiles()


def test_scripts_of_rows_have_their_parts() -> None:
    for row in _rows():
        parts = script_parts(row["eval_script"])
        assert "cd /testbed" in parts.setup
        assert row["base_commit"] not in parts.tests
        assert "git apply" not in parts.setup
        assert "git checkout" not in parts.setup
        assert len(parts.tests.splitlines()) == 1
        assert f"\n: '>>>>> Start Test Output'\n{parts.tests}" in row["eval_script"]


def test_scripts_of_rows_are_scripts(tmp_path: Path) -> None:
    for number, row in enumerate(_rows()[::40]):
        for script in (
            guarded_script(row["eval_script"], "/x"),
            official_script(row["eval_script"]),
        ):
            path = tmp_path / f"{number}.sh"
            path.write_text(script)
            subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("pytest\n", "does not apply its test patch"),
        ("git checkout x y\ngit apply -v - <<'EOF_1'\nx\nEOF_1\npytest\n", "no markers"),
    ],
)
def test_a_script_of_another_form_is_refused(script: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        script_parts(script)


def test_the_exit_code_is_printed_behind_the_tests() -> None:
    script = "a\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\ngit checkout x\n"
    lines = official_script(script).splitlines()
    assert lines[2:6] == [
        "pytest",
        "SWEBENCH_TEST_EXIT_CODE=$?",
        ": '>>>>> End Test Output'",
        'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
    ]
    assert official_script("pytest\n") == "pytest\n"


def test_guarded_files_are_listed(tmp_path: Path) -> None:
    guarded = [
        *("conftest.py", "a/b/conftest.py", "pytest.ini", "a/setup.cfg", "pyproject.toml", "x.pth"),
        *("tests/runtests.py", "bin/test", "sympy/testing/runtests.py", "x.egg-info/PKG-INFO"),
        *(".gitattributes", "pytest.py", "_pytest/main.py", "a/sitecustomize.py", "setup.py"),
    ]
    others = [
        *(".git/conftest.py", "a/conftest.pyc", "src/_pytest/main.py", "other/runtests.py", "test"),
        *("a/bin/test", "django/test/runner.py", "conftest_helper.py"),
    ]
    for name in (*guarded, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "conftest.py").symlink_to("../test")
    ran = subprocess.run(
        ["bash", "-c", find_guarded()], cwd=tmp_path, check=True, capture_output=True
    )
    listed = sorted(name.removeprefix("./") for name in ran.stdout.decode().split("\0") if name)
    assert listed == sorted([*guarded, "linked/conftest.py"])
