"""Without a marked test the plugin does nothing at all."""

from __future__ import annotations

import pytest

HEAVY = "torch transformers datasets openai docker numpy scipy pydantic rich"


def test_importing_the_plugin_imports_no_extras(pytester: pytest.Pytester):
    pytester.makepyfile(
        f"""
        import sys

        def test_nothing_heavy_is_loaded():
            assert "pytest_llmeval.plugin" in sys.modules
            assert not [name for name in "{HEAVY}".split() if name in sys.modules]
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:anyio")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("arguments", [(), ("-n", "2"), ("-n", "2", "--dist=loadfile")])
def test_ordinary_tests_run_as_ever(pytester: pytest.Pytester, arguments: tuple[str, ...]):
    pytester.makepyfile("def test_one(): pass\n\ndef test_two(): assert False")
    (pytester.path / "thresholds.toml").write_text("this is not read")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*= llmeval =*")
    assert not (pytester.path / "runs").exists()


def test_the_controller_of_ordinary_tests_loads_no_gates(pytester: pytest.Pytester):
    pytester.makepyfile("def test_one(): pass")
    pytester.makeconftest(
        f"""
        import sys

        def pytest_unconfigure(config):
            if not hasattr(config, "workerinput"):
                loaded = [name for name in "{HEAVY}".split() if name in sys.modules]
                assert not loaded, loaded
                assert "pytest_llmeval.plugin.controller" not in sys.modules
                print("nothing of it")
        """
    )
    arguments = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*arguments, "-n", "2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*nothing of it*"])


def test_collecting_only_writes_nothing(project):
    result = project.run("--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["test_bench.py::test_bench?art-0000?"])
    assert not (project.path / "runs").exists()


def test_ordinary_tests_run_with_marked_ones(project):
    (project.path / "test_unit.py").write_text("def test_unit(): pass")
    for arguments in ((), ("-n", "2")):
        result = project.run(*arguments)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*7 passed*3 wrong*"])
