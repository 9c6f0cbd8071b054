"""A user's mistake ends the session with one line and exit code 4, before anything is loaded."""

from __future__ import annotations

import pytest

MODEL = "--llm-model=replay:answers.jsonl"
LONG = "n" * 300  # more than a file's name may have


@pytest.fixture
def bare(project):
    """The common project with recorded answers instead of a `model` fixture of its own."""
    (project.path / "conftest.py").unlink()
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    return project


def mistake(result: pytest.RunResult) -> str:
    """The one line that the session ended with."""
    assert result.ret == 4
    lines = [line for line in result.errlines if line.strip()]
    assert len(lines) == 1, lines
    assert "Traceback" not in result.stdout.str()
    return lines[0]


@pytest.mark.parametrize("xdist", [(), ("-n", "1")])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "ERROR: no model to evaluate: give --llm-model SPEC"),
        (("--llm-model=reply:x",), "unknown kind of model 'reply'; did you mean 'replay'?"),
        (("--llm-model=some/model",), "did you mean 'hf:some/model'?"),
        (("--llm-model=replay:answer.jsonl",), "did you mean 'answers.jsonl'?"),
        (("--llm-model=hf:./no-such-folder",), "no-such-folder"),
        ((MODEL, "--llm-protocol=plan"), "no protocol 'plan'; did you mean 'plain'?"),
        ((MODEL, "--llm-protocol=plain+chatt"), "did you mean 'chat'?"),
        ((MODEL, "--llm-limit=0"), "--llm-limit: 0 is below 1"),
        ((MODEL, "--llm-seed=x"), "--llm-seed: 'x' is not a whole number"),
        ((MODEL, "--llm-thresholds=none.toml"), "none.toml"),
        ((MODEL, "--llm-runs=answers.jsonl"), "--llm-runs"),
        ((MODEL, f"--llm-runs={LONG}"), "File name too long"),
        ((MODEL, f"--llm-runs={LONG}", "--llm-resume"), "File name too long"),
        ((MODEL, f"--llm-data={LONG}"), "no such folder"),
        ((MODEL, f"--llm-baseline={LONG}"), "File name too long"),
        ((f"--llm-model=replay:{LONG}",), "no such file"),
        ((MODEL, "--llm-hybrid=leter=1"), "unknown scorer 'leter'; did you mean 'letter'?"),
        ((MODEL, "--llm-replicas=2"), "--llm-replicas needs --llm-ray local"),
        ((MODEL, "--llm-gpus-per-replica=1"), "--llm-gpus-per-replica needs --llm-ray local"),
        ((MODEL, "-o", "llm_seed=x"), "-o llm_seed: 'x' is not a whole number"),
    ],
)
def test_options(bare, arguments, line, xdist):
    result = bare.run(*arguments, *xdist)
    assert line in mistake(result)
    assert not (bare.path / "runs").exists()


def test_replicas_of_each_worker_are_refused(bare):
    result = bare.run(MODEL, "--llm-ray=local", "-n", "2")
    assert "leave out -n, and set their number with --llm-replicas" in mistake(result)


def test_a_gpu_cannot_be_chosen_for_several_replicas(bare):
    result = bare.run(MODEL, "--llm-ray=local", "--llm-gpus-per-replica=1.5")
    assert "--llm-gpus-per-replica 1.5: above 1, only whole GPUs" in mistake(result)


def test_an_empty_option_is_ignored(bare):
    """As in a job whose variable is not set: ``--llm-runs "$RUNS"``."""
    empty = [f"--llm-{name}=" for name in ("runs", "data", "thresholds", "baseline", "shard")]
    result = bare.run(MODEL, *empty)
    assert result.ret == 1
    assert bare.run_folder.parent == bare.path / "runs"


def test_an_ini_file_sets_the_same_options(bare):
    bare.pytester.makeini("[pytest]\nllm_model = replay:answers.jsonl\nllm_limit = many")
    assert "llm_limit in" in mistake(bare.run())


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("llm_resume = maybe", "llm_resume in {ini}: invalid truth value 'maybe'"),
        ("llm_dry_run = maybe", "llm_dry_run in {ini}: invalid truth value 'maybe'"),
        ("llm_wrong = maybe", "llm_wrong in {ini}: 'maybe' is not one of record, fail"),
        (
            "llm_temperature = -1",
            "llm_temperature in {ini}: -1 is not a finite number of at least 0",
        ),
        ("llm_timeout = nan", "llm_timeout in {ini}: nan is not a finite number above 0"),
        (
            "llm_treshold = strict.toml",
            "llm_treshold in {ini}: no such option; did you mean 'llm_thresholds'?",
        ),
    ],
)
def test_values_of_an_ini_file(bare, given, line):
    """pytest reports some of them by a traceback of the collection, and warns of unknown names."""
    ini = bare.pytester.makeini(f"[pytest]\nllm_model = replay:answers.jsonl\n{given}")
    assert line.format(ini=ini) in mistake(bare.run())


def test_values_of_an_ini_file_under_xdist(bare):
    bare.pytester.makeini("[pytest]\nllm_model = replay:answers.jsonl\nllm_resume = maybe")
    assert "invalid truth value 'maybe'" in mistake(bare.run("-n", "2"))


@pytest.mark.skipif(pytest.version_tuple < (9, 0), reason="does not read [tool.pytest]")
def test_a_number_without_quotes_in_a_toml_table_that_wants_text(bare):
    (bare.path / "pyproject.toml").write_text("[tool.pytest]\nllm_seed = 3\n")
    line = mistake(bare.run(MODEL))
    assert "config option 'llm_seed' expects a string, got int: 3" in line


def test_names_in_an_ini_file_that_are_another_plugins(bare):
    """Names like an option of the plugin, and options of other plugins."""
    bare.pytester.makeini("[pytest]\nllm_seeds = 1\nllm_of_another_tool = 2\n")
    (bare.path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addini('llm_seeds', 'of another plugin')\n"
    )
    assert "no such option" not in mistake(bare.run())


@pytest.mark.parametrize("xdist", [(), ("-n", "1")])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[benchmarks.bench\n", "thresholds.toml"),
        ("[benchmarks.bench]\nacuracy = 0.3", "did you mean 'accuracy'?"),
        ("[benchmarks.bensch]\naccuracy = 0.3", "did you mean 'bench'?"),
        ("[benchmarks.bench.subjects.zooo]\naccuracy = 0.3", "did you mean 'zoo'?"),
        ("[benchmarks.bench]\naccuracy = 1.3", "benchmarks.bench.accuracy"),
    ],
)
def test_thresholds(project, text, line, xdist):
    project.thresholds(text)
    assert line in mistake(project.run(*xdist))
    assert not (project.path / "loads.txt").exists()


@pytest.mark.parametrize(
    ("marked", "line"),
    [
        ("@pytest.mark.llmeval\ndef test_x(answer): ...", "takes a Benchmark, not NoneType"),
        ("@pytest.mark.llmeval(TEMPLATE)\ndef test_x(answer): ...", "not Template"),
        (
            "@pytest.mark.llmeval(BENCH, protocol=5)\ndef test_x(answer): ...",
            "benchmark 'bench': protocol= of the marker is of type int, not the name of a protocol",
        ),
        ("@pytest.mark.llmeval(BENCH, shots=3)\ndef test_x(answer): ...", "not shots"),
        ("@pytest.mark.llmeval(BENCH)\ndef test_x(): ...", "uses neither `answer` nor `item`"),
        ("@pytest.mark.llmeval(BENCH)\ndef test_x(answer): ...", "a result has one name"),
        (
            "@pytest.mark.llmeval(Benchmark('empty', lambda d: Dataset(()), BENCH.protocols))\n"
            "def test_x(answer): ...",
            "benchmark 'empty' has no items",
        ),
        (
            "TWICE = (Item('a', 's', 'q', 0, ('x', 'y')),) * 2\n"
            "@pytest.mark.llmeval(Benchmark('twice', lambda d: Dataset(TWICE), BENCH.protocols))\n"
            "def test_x(answer): ...",
            "item id 'a' occurs twice",
        ),
        (
            "OUT = (Item('a', 's', 'q', 2, ('x', 'y')),)\n"
            "@pytest.mark.llmeval(Benchmark('out', lambda d: Dataset(OUT), BENCH.protocols))\n"
            "def test_x(answer): ...",
            "gold 2 is outside its 2 options",
        ),
        ("Benchmark('a b', load, BENCH.protocols)", "benchmark name 'a b'"),
        ("Benchmark('x', 'faq.jsonl', BENCH.protocols)", "benchmark 'x': source is of type str"),
        ("Protocol('x', TEMPLATE, scorer='letter', samples=0)", "samples = 0 is below 1"),
        (
            "@pytest.mark.llmeval(Benchmark('none', lambda d: None, BENCH.protocols))\n"
            "def test_x(answer): ...",
            "benchmark 'none': its source returned NoneType, not a Dataset",
        ),
        (
            "UNASKED = (Item('a', 's', None, 1, ('x', 'y')),)\n"
            "@pytest.mark.llmeval(Benchmark('un', lambda d: Dataset(UNASKED), BENCH.protocols))\n"
            "def test_x(answer): ...",
            "item 'a': question is of type NoneType, not text",
        ),
    ],
)
def test_markers_and_benchmarks(project, marked, line):
    project.benchmark(marked)
    assert line in mistake(project.run())
    assert line in mistake(project.run("-n", "2"))


def test_a_dry_run_reports_a_template_that_fails_on_an_item(project):
    file = project.path / "test_bench.py"
    failing = "question=lambda item: item.question if item.id != 'law-0001' else item.nope"
    file.write_text(file.read_text().replace("question=lambda item: item.question", failing))
    line = mistake(project.run("--llm-dry-run"))
    assert line.startswith(
        "ERROR: test_bench.py::test_bench: template 'plain' fails on item 'law-0001': AttributeError"
    )


def test_a_data_folder_that_does_not_exist(bare):
    (bare.path / "test_bench.py").write_text(
        "import pytest\nfrom pytest_llmeval.catalog import mmlu\n\n"
        "@pytest.mark.llmeval(mmlu())\ndef test_mmlu(answer):\n    assert answer.correct\n"
    )
    assert "nowhere" in mistake(bare.run(MODEL, "--llm-data=nowhere"))


def test_a_model_fixture_that_returns_nonsense(project):
    project.model("import pytest\n\n@pytest.fixture(scope='session')\ndef model():\n    return 3\n")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the `model` fixture returned int: return an object with*"])


def test_answer_outside_a_marked_test(project):
    (project.path / "test_bench.py").write_text("def test_plain(answer): pass")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*need @pytest.mark.llmeval(BENCHMARK)*"])


def test_answer_outside_a_marked_test_beside_a_marked_one(project):
    """An autouse fixture that takes `answer`, say."""
    project.benchmark("def test_plain(answer): pass")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["ERROR *::test_plain - Failed: `item`, `model` and `answer` need*"]
    )


def test_a_damaged_run_folder(project):
    project.run()
    (project.run_folder / "run.json").write_text("{")
    assert "run.json cannot be read" in mistake(project.run("--llm-resume"))
    result = project.pytester.run("llmeval", "show", project.run_folder)
    assert result.ret == 4
    assert len(result.errlines) == 1
