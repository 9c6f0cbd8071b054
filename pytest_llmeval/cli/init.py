"""``llmeval init``: the first gate of a repository, as four small files that run as written.

They are guests in a repository that may have tests of its own: plain ``pytest`` runs these as
before, and the job for the evaluation does not take their options and fixtures over.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import DISTRIBUTION
from pytest_llmeval.core.installation import Origin
from pytest_llmeval.core.installation import git
from pytest_llmeval.core.installation import origin
from pytest_llmeval.core.installation import origin_at
from pytest_llmeval.models import backends
from pytest_llmeval.models.base import read_query
from pytest_llmeval.models.demo import INSTALL
from pytest_llmeval.models.demo import weights
from pytest_llmeval.models.hf.spec import KEYS
from pytest_llmeval.models.hf.spec import locate
from pytest_llmeval.models.openai.spec import DEFAULT_KEY
from pytest_llmeval.models.openai.spec import DEFAULT_URL
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.models.replay import open_model as open_replay
from pytest_llmeval.runs.run import LATEST

BASELINE = "last-release"
DEFAULT_MODEL = "demo"

THRESHOLDS_FILE = "thresholds.toml"
TEST_FILE = "benchmarks/test_starter.py"
REQUIREMENTS_FILE = "benchmarks/requirements.txt"
WORKFLOW_FILE = ".github/workflows/llmeval.yml"

PLACEHOLDER = "git+https://example.invalid/REPLACE-THIS.git"
"""Requirement for a source that is not known; `init` writes a file with it again."""

_CPU_INDEX = "https://download.pytorch.org/whl/cpu"

_CONFIGURATIONS = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)

_THRESHOLDS = f"""\
version = 1

# The bounds that a run must keep. A gate that fails, or that cannot be decided, is red.
[benchmarks.starter]
accuracy = 0.50                 # short for {{ min = 0.50 }}: raise it to what your model must reach
max_errors = 0                  # an error is not an answer

# What may be lost against the last release, question by question. The first run has no baseline and
# is made with --llm-baseline none; `llmeval baseline RUN {BASELINE}` then saves
# baselines/{BASELINE}.json, which belongs into git.
[benchmarks.starter.regression]
baseline = "{BASELINE}"
max_drop = 0.05                 # of the accuracy, where chance does not explain it
max_subject_drop = 0.40         # of the accuracy of any subject: 25 questions show no less
"""

_TEST = '''\
"""One test for every question. A wrong answer is a measurement; the gates decide."""

import pytest

# Where the plugin is not installed, such as in a job for ordinary tests, this file is skipped.
catalog = pytest.importorskip("pytest_llmeval.catalog")


@pytest.mark.llmeval(catalog.starter(), protocol="{protocol}")
def test_starter(answer):
    assert answer.correct
'''

# The commits of the actions' releases: a tag can be moved to other code, a commit cannot.
_WORKFLOW = """\
# Evaluates the model and applies thresholds.toml; a red gate is a red job.
name: llmeval
on:
  push:
    branches: [{branch}]
  pull_request:
  schedule:
    - cron: "23 4 * * 1"  # Mondays: data, libraries and endpoints change without a commit, too
  workflow_dispatch:
    inputs:
      first_run:
        description: There is no baseline yet (--llm-baseline none)
        type: boolean
        default: false
permissions:
  contents: read
concurrency:
  group: llmeval-${{{{ github.ref }}}}
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}
jobs:
  evaluate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
        with:
          persist-credentials: false
      - uses: actions/setup-python@a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: {requirements}
      - uses: actions/cache@cdf6c1fa76f9f475f3d7449005a359c84ca0f306 # v5.0.3
        with:
          path: ~/.cache/huggingface
          key: huggingface-${{{{ hashFiles('benchmarks/**', '{workflow}') }}}}
          restore-keys: huggingface-
      - name: install
        run: |
{install}
      - name: evaluate
        env:
{environment}
        run: |
          {command} --llm-report html --junitxml junit.xml
      # To accept this run as the next baseline, commit the file of the artifact to baselines/.
      - name: baseline
        if: success() && github.event_name != 'pull_request'
        run: |
          llmeval baseline latest {baseline} --folder new-baseline
      - uses: actions/upload-artifact@b7c566a772e6b6bfb58ed0dc250532a479d7789f # v6.0.0
        if: always()
        with:
          name: llmeval
          # runs/ holds report.html and all answers
          path: |
            runs/
            junit.xml
            new-baseline/
"""


@dataclass(frozen=True)
class ModelSetup:
    """What the spec of a model means for the files.

    ``arguments`` of pytest, ``extras`` of the plugin, the ``protocol`` under which the model can be
    evaluated, the names of the ``secrets`` it needs, and ``notes`` for the user.
    """

    arguments: tuple[str, ...]
    extras: tuple[str, ...]
    protocol: str
    secrets: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_demo(self) -> bool:
        return self.arguments[0].partition(":")[0] == "demo"


def add_commands(commands: Any) -> None:
    """Add ``init`` to the subparsers of ``llmeval``."""
    init = commands.add_parser("init", help="write thresholds, a benchmark test and a workflow")
    init.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path(),
        metavar="DIR",
        help="in the repository, to whose root the files are written (default: the working folder)",
    )
    init.add_argument(
        "--model",
        metavar="SPEC",
        help=f"what to evaluate (default: prompt for it on a terminal, else {DEFAULT_MODEL})",
    )
    init.add_argument("--base-url", metavar="URL", help="address of an openai: endpoint")
    init.add_argument(
        "--from-repo",
        metavar="URL[@REVISION]",
        help="git repository that CI installs the plugin from, or the address of a wheel"
        " (default: where it was installed from here)",
    )
    init.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    root = repository_of(options.folder)
    model = options.model
    if model is None:
        model = DEFAULT_MODEL if options.base_url is not None else _prompt_for_model()
    evaluation = read_model(model, options.base_url, root)
    source = origin()
    if options.from_repo is not None:
        source = origin_at(options.from_repo, source.commit)
        if source.url is None:
            # Its value, which may hold a password, is not repeated.
            raise ConfigError(f"--from-repo: {source.note}")
    requirement, unknown = requirement_of(source, evaluation.extras, root)
    command = command_of(evaluation, root)
    made = files(evaluation, command, requirement, default_branch(root))
    here = root == Path().absolute()
    written = {name: _write(root / name, text) for name, text in made.items()}
    for name, new in written.items():
        shown = name if here else root / name
        print(f"wrote {shown}" if new else f"kept  {shown} (it exists)")
    notes = [*evaluation.notes, *([unknown] if unknown and written[REQUIREMENTS_FILE] else [])]
    for note in notes:
        print(f"note: {note}")
    if any(written.values()):
        print("next:")
        for line in _next_commands(command, evaluation, None if here else root):
            print(f"  {line}")
    return 0


def _prompt_for_model() -> str:
    """Return the spec that the user types on a terminal; the default for no text, and elsewhere."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return DEFAULT_MODEL
    try:
        text = input(f"Model to evaluate, such as hf:ORG/NAME or openai:NAME [{DEFAULT_MODEL}]: ")
    except (EOFError, KeyboardInterrupt):
        print()
        raise ConfigError("no model was chosen, nothing is written: give --model SPEC") from None
    return text.strip() or DEFAULT_MODEL


def _next_commands(command: str, evaluation: ModelSetup, folder: Path | None) -> list[str]:
    """From the files to the first verdict, and to the baseline of later runs."""
    return [
        *([f"cd {shlex.quote(str(folder))}"] if folder is not None else []),
        *([INSTALL] if evaluation.is_demo and weights() is None else []),
        f"{command} --llm-baseline none",
        f"llmeval baseline {LATEST} {BASELINE}",
    ]


def _write(file: Path, text: str) -> bool:
    """Write a new file; False where there is one, unless its source is still to be filled in."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if PLACEHOLDER in _text(file) and PLACEHOLDER not in text:
            file.unlink()
        with file.open("x", encoding="utf-8", newline="\n") as made:
            made.write(text)
    except FileExistsError:
        if not file.is_file():
            raise ConfigError(f"cannot write {file}: a folder or file is in its way") from None
        return False
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror or error}") from None
    return True


# The files ---------------------------------------------------------------------------------


def files(evaluation: ModelSetup, command: str, requirement: str, branch: str) -> Mapping[str, str]:
    """Path in the repository → text of the file there."""
    local = "hf" in evaluation.extras
    install = [
        # First, so that pip does not choose the build for GPUs, which is ten times the size.
        *([f"python -m pip install torch --index-url {_CPU_INDEX}"] if local else []),
        f"python -m pip install -r {REQUIREMENTS_FILE}",
        *([INSTALL] if evaluation.is_demo else []),
    ]
    environment = [f"{name}: ${{{{ secrets.{name} }}}}" for name in evaluation.secrets]
    environment.append("PYTEST_ADDOPTS: ${{ inputs.first_run && '--llm-baseline none' || '' }}")
    workflow = _WORKFLOW.format(
        branch=json.dumps(branch),
        requirements=REQUIREMENTS_FILE,
        workflow=WORKFLOW_FILE,
        install="\n".join(f"{' ' * 10}{line}" for line in install),
        environment="\n".join(f"{' ' * 10}{line}" for line in environment),
        command=command,
        baseline=BASELINE,
    )
    return {
        THRESHOLDS_FILE: _THRESHOLDS,
        TEST_FILE: _TEST.format(protocol=evaluation.protocol),
        REQUIREMENTS_FILE: requirement,
        WORKFLOW_FILE: workflow,
    }


def command_of(evaluation: ModelSetup, root: Path) -> str:
    """Return the command of the workflow, and the one for the user's own terminal."""
    folder = Path(TEST_FILE).parent
    # Benchmarks of another kind may be there already.
    others = [path for path in (root / folder).glob("**/*.py") if path != root / TEST_FILE]
    words = ["pytest", TEST_FILE if others else str(folder)]
    # The plugins that a project's own options name, and what its conftest.py imports, are not
    # installed where only the model is evaluated.
    if any("addopts" in _text(root / name) for name in _CONFIGURATIONS):
        words += ["-o", "addopts="]
    if (root / "conftest.py").exists():
        words += [f"--confcutdir={folder}"]
    words += ["--llm-model", *evaluation.arguments, "--llm-thresholds", THRESHOLDS_FILE]
    return shlex.join(words)


def requirement_of(source: Origin, extras: tuple[str, ...], root: Path) -> tuple[str, str]:
    """Return the requirements file for a source, and a note for the user (or an empty one)."""
    names = f"[{','.join(extras)}]"
    if source.path is not None and source.path.is_relative_to(root):
        return f"./{source.path.relative_to(root).as_posix()}{names}\n", ""
    if source.url is not None:
        return f"{DISTRIBUTION}{names} @ {source.url}\n", source.note
    text = (
        "# Replace the address, or run: llmeval init --from-repo URL@COMMIT\n"
        f"{DISTRIBUTION}{names} @ {PLACEHOLDER}\n"
    )
    return text, (
        f"{source.note}: CI cannot install the plugin before {REQUIREMENTS_FILE} names its source"
        " (llmeval init --from-repo URL@COMMIT)"
    )


def repository_of(folder: Path) -> Path:
    """Return the root of the git repository of a folder; the folder itself without one."""
    start = folder.absolute()
    return next((path for path in (start, *start.parents) if (path / ".git").exists()), start)


def default_branch(root: Path) -> str:
    """Return the branch whose pushes are evaluated: the remote's default, else the current one."""
    remote = git(root, "symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    branches = (git(root, "branch", "--format=%(refname:short)") or "").splitlines()
    named = next((name for name in ("main", "master") if name in branches), None)
    return named or git(root, "symbolic-ref", "--short", "HEAD") or "main"


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


# The model ---------------------------------------------------------------------------------


def read_model(spec: str, base_url: str | None, root: Path) -> ModelSetup:
    """Return the consequences of a spec for the files; the model is not opened.

    Raises ConfigError, in one line, for a spec that no run would take, and for one that cannot be
    used in CI.
    """
    kind, _, rest = spec.partition(":")
    if kind not in (kinds := backends()):
        hint = suggestion(kind, kinds)
        if "/" in spec and "did you mean" not in hint:
            hint = f"; did you mean 'hf:{spec}'?"
        raise ConfigError(f"--model {spec}: unknown kind of model {kind!r}{hint}")
    if base_url is not None and kind != "openai":
        raise ConfigError(f"--base-url is the address of an openai: endpoint, not of {spec}")
    if not spec.isprintable() or "${{" in spec:
        raise ConfigError(f"--model {spec!r}: characters that a workflow cannot hold")
    if kind not in _KINDS:
        return ModelSetup((spec,), ("report",), "letter")
    return _KINDS[kind](rest, base_url, root)


def _demo(rest: str, _base_url: str | None, _root: Path) -> ModelSetup:
    target, mark, query = rest.partition("?")
    if target:
        raise ConfigError(f"--model demo:{rest}: the demo model is one model; write demo")
    read_query("demo", query, KEYS)
    return ModelSetup((f"demo:{rest}" if mark else "demo",), ("hf", "report"), "cloze")


def _hf(rest: str, _base_url: str | None, root: Path) -> ModelSetup:
    target, mark, query = rest.partition("?")
    read_query(f"hf:{target}", query, KEYS)
    kind, target = locate(f"hf:{target}", target)
    extras = ("hf", "report")
    if kind == "hub":
        return ModelSetup((f"hf:{rest}",), extras, "cloze", secrets=("HF_TOKEN",))
    place, note = _in_repository(Path(target), root)
    return ModelSetup((f"hf:{place}{mark}{query}",), extras, "cloze", notes=(note,))


def _openai(rest: str, base_url: str | None, _root: Path) -> ModelSetup:
    spec = parse_spec(rest, base_url)
    if spec.key_file is not None:
        raise ConfigError(
            f"openai:{spec.model}: key_file={spec.key_file} is a file of this machine; a workflow"
            " has secrets: write key_env=NAME"
        )
    key = spec.key_env or DEFAULT_KEY
    if not re.fullmatch(r"(?!GITHUB_)[A-Za-z_][A-Za-z0-9_]*", key):
        raise ConfigError(f"openai:{spec.model}: key_env={key} cannot be the name of a secret")
    arguments = [f"openai:{rest}"]
    if spec.base_url != DEFAULT_URL and "base_url=" not in rest:
        arguments += ["--llm-base-url", spec.base_url]
    notes = [f"add the key to the secrets of the repository, as {key}"]
    if urlsplit(spec.base_url).hostname in ("localhost", "127.0.0.1", "::1"):
        notes.append(f"{spec.base_url} is on this machine: a hosted runner does not reach it")
    # Options that have no labels are compared by the likelihood of their texts.
    protocol = "cloze" if spec.choices == "echo" else "letter"
    return ModelSetup(tuple(arguments), ("openai", "report"), protocol, (key,), tuple(notes))


def _replay(rest: str, _base_url: str | None, root: Path) -> ModelSetup:
    open_replay(rest)
    target, mark, query = rest.partition("?")
    place, note = _in_repository(Path(target), root)
    return ModelSetup((f"replay:{place}{mark}{query}",), ("report",), "letter", notes=(note,))


def _in_repository(path: Path, root: Path) -> tuple[str, str]:
    """Return a local path as the workflow names it, and a note on what it requires."""
    whole = path.expanduser().absolute()
    if not whole.is_relative_to(root):
        return str(whole), f"{whole} is outside of the repository: a hosted runner does not have it"
    inside = whole.relative_to(root).as_posix()
    return f"./{inside}", f"the workflow needs {inside} in the repository"


_KINDS: Mapping[str, Callable[[str, str | None, Path], ModelSetup]] = {
    "demo": _demo,
    "hf": _hf,
    "openai": _openai,
    "replay": _replay,
}
