"""``llmeval init --from HARNESS``: a workflow that runs another harness, and gates on its log."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.cli.init_files import ACTIONS
from pytest_llmeval.cli.init_files import BASELINE
from pytest_llmeval.cli.init_files import REQUIREMENTS_FILE
from pytest_llmeval.cli.init_files import THRESHOLDS_FILE
from pytest_llmeval.cli.init_files import WORKFLOW_FILE
from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop.names import benchmark_name

HARNESSES = ("lm-eval", "inspect")
DEFAULT_MODEL = "hf:HuggingFaceTB/SmolLM2-135M-Instruct"
LOGS = "logs"
RUN = "runs/today"

# The versions whose logs the tests read. The version is part of the fingerprint, so it is pinned.
_LM_EVAL = "0.4.13"
_INSPECT = "0.3.285"
_CPU_TORCH = "python -m pip install torch --index-url https://download.pytorch.org/whl/cpu"

_THRESHOLDS = """\
version = 1

# The bounds that a log must keep. A gate that fails, or that cannot be decided, is red.
[benchmarks.{benchmark}]
required = true
accuracy = 0.50                 # raise it to what your model must reach
max_errors = 0                  # an error is not an answer

# What may be lost against the last release, question by question. The first run has no baseline;
# `llmeval baseline RUN {baseline}` saves baselines/{baseline}.json, which belongs into git.
[benchmarks.{benchmark}.regression]
baseline = "{baseline}"
max_drop = 0.05                 # of the accuracy, where chance does not explain it
"""

_WORKFLOW = """\
# Evaluates the model with {harness} and applies thresholds.toml to its log; a red gate is a red job.
name: llmeval
on:
  push:
    branches: [{branch}]
  pull_request:
  workflow_dispatch:
    inputs:
      first_run:
        description: There is no baseline yet (--baseline none)
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
          key: huggingface-${{{{ hashFiles('{workflow}') }}}}
          restore-keys: huggingface-
      - name: install
        run: |
{install}
      # Your own command: it has to write a log with all answers to {logs}/.
      - name: evaluate
        env:
          {secret}: ${{{{ secrets.{secret} }}}}
        run: |
          {command}
      - name: import
        run: |
          {import_command}
      - name: gate
        run: |
          llmeval gate {run} {thresholds} ${{{{ inputs.first_run && '--baseline none' || '' }}}}
      # To accept this run as the next baseline, commit the file of the artifact to baselines/.
      - name: baseline
        if: success() && github.event_name != 'pull_request'
        run: |
          llmeval baseline {run} {baseline} --folder new-baseline
      - name: report
        if: always() && hashFiles('{run}/run.json') != ''
        run: |
          llmeval report {run}
      - uses: {upload}
        if: always()
        with:
          name: llmeval
          path: |
            {logs}/
            runs/
            new-baseline/
"""


@dataclass(frozen=True)
class HarnessSetup:
    """What a harness, its task and a model mean for the files."""

    harness: str
    #: Name of the imported benchmark.
    benchmark: str
    #: Command of the harness.
    command: str
    import_command: str
    #: Extras of the plugin.
    extras: tuple[str, ...]
    #: Lines of the requirements in addition to the plugin.
    requirements: tuple[str, ...]
    #: Name of the secret that the model needs.
    secret: str
    #: The model runs on the machine of the job.
    is_local: bool

    def files(self, requirement: str, branch: str) -> Mapping[str, str]:
        """Return path in the repository → text of the file there.

        ``requirement``: the lines that install the plugin.
        """
        install = [*([_CPU_TORCH] if self.is_local else []), f"pip install -r {REQUIREMENTS_FILE}"]
        return {
            THRESHOLDS_FILE: _THRESHOLDS.format(benchmark=self.benchmark, baseline=BASELINE),
            REQUIREMENTS_FILE: requirement + "".join(f"{line}\n" for line in self.requirements),
            WORKFLOW_FILE: _WORKFLOW.format(
                harness=self.harness,
                branch=json.dumps(branch),
                requirements=REQUIREMENTS_FILE,
                workflow=WORKFLOW_FILE,
                install="\n".join(f"{' ' * 10}{line}" for line in install),
                logs=LOGS,
                run=RUN,
                thresholds=THRESHOLDS_FILE,
                baseline=BASELINE,
                secret=self.secret,
                command=self.command,
                import_command=self.import_command,
                **ACTIONS,
            ),
        }

    @property
    def next_commands(self) -> list[str]:
        """Commands from the files to the first verdict, and to the baseline of later runs."""
        return [
            self.command,
            self.import_command,
            f"llmeval gate {RUN} --baseline none",
            f"llmeval baseline {RUN} {BASELINE}",
        ]


def harness_setup(
    harness: str, task: str | None, model: str | None, base_url: str | None, scorer: str | None
) -> HarnessSetup:
    """Return the setup of a harness. Raises ConfigError, in one line, for what it cannot evaluate."""
    if not task:
        raise ConfigError(f"--from {harness}: name what it evaluates: --task TASK")
    kind, _, name = (model or DEFAULT_MODEL).partition(":")
    if kind not in ("hf", "openai") or not name:
        raise ConfigError(f"--from {harness}: --model {model}: write hf:ORG/NAME or openai:NAME")
    if base_url is not None and kind != "openai":
        raise ConfigError(f"--base-url is the address of an openai: endpoint, not of {model}")
    for option, text in (("--task", task), ("--model", name), ("--scorer", scorer or "")):
        if not text.isprintable() or "${{" in text:
            raise ConfigError(f"{option} {text!r}: characters that a workflow cannot hold")
    if harness == "lm-eval":
        prefix, benchmark = "lmeval", task
        words = ["lm_eval", *_lm_eval_model(kind, name, base_url), "--tasks", task]
        words += ["--log_samples", "--output_path", LOGS]
        requirements = (f"lm-eval[{'hf' if kind == 'hf' else 'api'}]=={_LM_EVAL}",)
        extras: tuple[str, ...] = ("report",)
    else:
        prefix = "inspect"
        benchmark = task.rpartition("@")[2].rpartition("/")[2].removesuffix(".py")
        words = ["inspect", "eval", task, "--model", f"{kind}/{name}", "--log-dir", LOGS]
        words += [] if base_url is None else ["--model-base-url", base_url]
        libraries = ("torch", "transformers", "accelerate") if kind == "hf" else ("openai",)
        own = ("inspect-evals",) if task.startswith("inspect_evals/") else ()
        requirements = (f"inspect-ai=={_INSPECT}", *own, *libraries)
        extras = ("inspect", "report")
    chosen = [] if scorer is None else ["--scorer", scorer]
    return HarnessSetup(
        harness=harness,
        benchmark=benchmark_name(prefix, benchmark),
        command=shlex.join(words),
        import_command=shlex.join(["llmeval", "import", LOGS, "--out", RUN, *chosen]),
        extras=extras,
        requirements=requirements,
        secret="HF_TOKEN" if kind == "hf" else "OPENAI_API_KEY",
        is_local=kind == "hf",
    )


def _lm_eval_model(kind: str, name: str, base_url: str | None) -> list[str]:
    if kind == "hf":
        return ["--model", "hf", "--model_args", f"pretrained={name}"]
    if base_url is None:
        backend, arguments = "openai-chat-completions", f"model={name}"
    else:
        address = f"{base_url.rstrip('/')}/chat/completions"
        backend, arguments = "local-chat-completions", f"model={name},base_url={address}"
    return ["--model", backend, "--model_args", arguments, "--apply_chat_template"]
