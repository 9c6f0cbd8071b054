"""Sessions with tasks of lm-eval: results of every metric, names, refusals, resumption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEST = """
import pytest
from pytest_llmeval.catalog import lm_eval_task

@pytest.mark.llmeval(lm_eval_task("local_choices", include_path={folder!r}))
def test_choices(answer):
    assert answer.correct
"""

RIGHT = """
import pytest
from pytest_llmeval.testing import FakeModel

@pytest.fixture(scope="session")
def model():
    def answer(request):
        number = int(request.id[-4:])
        return [-1.0 if n == number % 3 else -20.0 for n in range(len(request.choices))]
    return FakeModel(answer, asks=["choices"])
"""

ONLY_TEXT = """
import pytest

@pytest.fixture(scope="session")
def model():
    return lambda prompt: "A"
"""

GATES = """
version = 1

[benchmarks.lmeval_local_choices.scorers.lmeval_acc_norm]
accuracy = 0.9
"""


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    from support.lm_eval_files import write_files

    return write_files(tmp_path / "tasks", data)


def test_every_metric_has_a_result_under_a_gate(folder: Path, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(RIGHT)
    pytester.makepyfile(TEST.format(folder=str(folder)))
    pytester.path.joinpath("thresholds.toml").write_text(GATES)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == 0, result.stdout.str()
    for metric in ("acc", "acc_norm", "acc_bytes"):
        result.stdout.fnmatch_lines(f"lmeval_local_choices?lmeval_{metric}?*24*1.0000*")
    (document,) = pytester.path.glob("runs/*/run.json")
    assert '"lm_eval": "0.4.13' in json.dumps(json.loads(document.read_text()))
    again = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--llm-resume")
    assert again.ret == 0, again.stdout.str()


def test_a_model_of_texts_is_refused(folder: Path, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ONLY_TEXT)
    pytester.makepyfile(TEST.format(folder=str(folder)))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == 1, result.stderr.str()
    result.stdout.fnmatch_lines("*returns only text; protocol 'lmeval' compares*")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--llm-shots", "3"), "*--llm-shots cannot change its prompts*"),
        (("--llm-protocol", "lmeval+chat"), "*protocol 'lmeval' has no chat form*"),
        (("--llm-permutations", "cyclic"), "*renders complete prompts*"),
    ],
)
def test_options_that_would_change_prompts_are_refused(
    folder: Path, pytester: pytest.Pytester, option: tuple[str, str], message: str
) -> None:
    pytester.makeconftest(RIGHT)
    pytester.makepyfile(TEST.format(folder=str(folder)))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *option)
    assert result.ret == 4
    result.stderr.fnmatch_lines(message)
