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
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_llmeval.cli.init_files import ACTIONS
from pytest_llmeval.cli.init_files import BASELINE
from pytest_llmeval.cli.init_files import REQUIREMENTS_FILE
from pytest_llmeval.cli.init_files import THRESHOLDS_FILE
from pytest_llmeval.cli.init_files import WORKFLOW_FILE
from pytest_llmeval.cli.init_files import default_branch
from pytest_llmeval.cli.init_files import repository_of
from pytest_llmeval.cli.init_files import requirement_of
from pytest_llmeval.cli.init_files import text_of
from pytest_llmeval.cli.init_files import write_file
from pytest_llmeval.cli.init_harness import HARNESSES
from pytest_llmeval.cli.init_harness import harness_setup
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import Origin
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

DEFAULT_MODEL = "demo"

TEST_FILE = "benchmarks/test_starter.py"
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
      - uses: {checkout}
        with:
          persist-credentials: false
      - uses: {setup_python}
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: {requirements}
      - uses: {cache}
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
      - uses: {upload}
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
    init.add_argument(
        "--from",
        dest="harness",
        choices=HARNESSES,
        help="run this harness in place of tests, and gate its log",
    )
    init.add_argument("--task", metavar="TASK", help="of --from: what the harness evaluates")
    init.add_argument("--scorer", metavar="NAME", help="of --from: the metric of the gates")
    init.set_defaults(command=_init)


def _init(options: argparse.Namespace) -> int:
    root = repository_of(options.folder)
    if options.harness is not None:
        setup = harness_setup(
            options.harness, options.task, options.model, options.base_url, options.scorer
        )
        requirement, unknown = requirement_of(_source(options), setup.extras, root)
        made = setup.files(requirement, default_branch(root))
        return _write_files(root, made, [], unknown, setup.next_commands)
    for option in ("task", "scorer"):
        if getattr(options, option) is not None:
            raise ConfigError(f"--{option} belongs to --from: add --from {HARNESSES[0]}")
    model = options.model
    if model is None:
        model = DEFAULT_MODEL if options.base_url is not None else _prompt_for_model()
    evaluation = read_model(model, options.base_url, root)
    requirement, unknown = requirement_of(_source(options), evaluation.extras, root)
    command = command_of(evaluation, root)
    made = files(evaluation, command, requirement, default_branch(root))
    return _write_files(root, made, evaluation.notes, unknown, _next_commands(command, evaluation))


def _source(options: argparse.Namespace) -> Origin:
    """Return the source that CI installs the plugin from."""
    source = origin()
    if options.from_repo is not None:
        source = origin_at(options.from_repo, source.commit)
        if source.url is None:
            # Its value, which may hold a password, is not repeated.
            raise ConfigError(f"--from-repo: {source.note}")
    return source


def _write_files(
    root: Path, made: Mapping[str, str], notes: Iterable[str], unknown: str, commands: Sequence[str]
) -> int:
    """Write the files, and print what was written, notes, and the commands to run next."""
    here = root == Path().absolute()
    written = {name: write_file(root / name, text) for name, text in made.items()}
    for name, new in written.items():
        shown = name if here else root / name
        print(f"wrote {shown}" if new else f"kept  {shown} (it exists)")
    for note in (*notes, *([unknown] if unknown and written[REQUIREMENTS_FILE] else [])):
        print(f"note: {note}")
    if any(written.values()):
        print("next:")
        for line in (*([] if here else [f"cd {shlex.quote(str(root))}"]), *commands):
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


def _next_commands(command: str, evaluation: ModelSetup) -> list[str]:
    """From the files to the first verdict, and to the baseline of later runs."""
    return [
        *([INSTALL] if evaluation.is_demo and weights() is None else []),
        f"{command} --llm-baseline none",
        f"llmeval baseline {LATEST} {BASELINE}",
    ]


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
        **ACTIONS,
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
    if any("addopts" in text_of(root / name) for name in _CONFIGURATIONS):
        words += ["-o", "addopts="]
    if (root / "conftest.py").exists():
        words += [f"--confcutdir={folder}"]
    words += ["--llm-model", *evaluation.arguments, "--llm-thresholds", THRESHOLDS_FILE]
    return shlex.join(words)


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
