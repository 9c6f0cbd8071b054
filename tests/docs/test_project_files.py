"""Files for those who take over agree with one another: version, workflow, hooks, changelog."""

from __future__ import annotations

import configparser
import re
import tomllib

import pytest

import pytest_llmeval
from pytest_llmeval.cli.init_files import ACTIONS
from support.paths import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOW = REPOSITORY / ".github" / "workflows" / "ci.yml"
ACTION = re.compile(r"uses: (actions/[\w-]+)@(\S+)")


def test_the_version_has_one_place():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]
    path = REPOSITORY / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{pytest_llmeval.__version__}"' in path.read_text(encoding="utf-8")
    assert re.fullmatch(r"\d+\.\d+\.\d+", pytest_llmeval.__version__)


def test_extras_that_are_installed_exist():
    extras = PROJECT["project"]["optional-dependencies"]
    for page in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), WORKFLOW):
        text = page.read_text(encoding="utf-8")
        for names in re.findall(r"(?:install|wheel)[^\n]*?[.}\w]\[([a-z,-]+)\]", text):
            assert set(names.split(",")) <= extras.keys(), page


def test_the_sdist_has_the_files_that_it_names():
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert not [name for name in included if not (REPOSITORY / name.lstrip("/")).exists()]


def test_python_versions_are_the_same_everywhere():
    yaml = pytest.importorskip("yaml", reason="PyYAML reads workflows")
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    tested = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert tested == classifiers
    assert PROJECT["project"]["requires-python"] == f">={tested[0]}"


def test_the_workflow_runs_environments_that_exist():
    environments = set(re.findall(r"tox -e (\w+)", WORKFLOW.read_text(encoding="utf-8")))
    assert {"lint", "tests", "docs"} <= environments
    tox = (REPOSITORY / "tox.ini").read_text(encoding="utf-8")
    for name in environments - {"tests"}:
        assert f"[testenv:{name}]" in tox


def test_the_set_up_for_contributors_has_what_the_tests_need():
    tox = configparser.ConfigParser()
    tox.read(REPOSITORY / "tox.ini")
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^pip install -c .*$", text, re.MULTILINE)
    assert set(tox["testenv"]["deps"].split()) <= set(command.split())
    (extras,) = re.findall(r"\[([a-z,-]+)\]", command)
    assert set(tox["testenv"]["extras"].split()) <= set(extras.split(","))


def test_actions_are_pinned_and_the_same_as_in_generated_workflows():
    pins = dict(ACTION.findall(WORKFLOW.read_text(encoding="utf-8")))
    assert {"actions/checkout", "actions/setup-python", "actions/upload-artifact"} == pins.keys()
    assert all(re.fullmatch(r"[0-9a-f]{40}", pin) for pin in pins.values())
    generated = dict(ACTION.findall("".join(f"uses: {use}\n" for use in ACTIONS.values())))
    assert pins.items() <= generated.items()


def test_hooks_run_without_a_network():
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the configuration")
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff", "ruff-format", "mypy"]
    assert {hook["language"] for hook in hooks} == {"system"}


def test_the_changelog_is_kept():
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - .+", version) for version in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Scores"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds
    (latest,) = [version for version in versions if pytest_llmeval.__version__ in version]
    assert latest == versions[1]
    assert "### Scores" in text.partition(f"## {latest}")[2]
