"""The front door for pytest: options, the marker, the fixtures, and the way in to the rest.

Nothing but this module and ``options`` is loaded before a test marked
``@pytest.mark.llmeval`` is collected; without one the plugin has no effect. The first marked
test registers the *answering* side (main process, or every xdist worker), and the plan that
it makes registers the *judging* side (main process, or the xdist controller).
"""

from __future__ import annotations

from collections.abc import Generator
from types import ModuleType
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.plugin import options
from pytest_llmeval.plugin.keys import ANSWERING
from pytest_llmeval.plugin.keys import COLLECTED
from pytest_llmeval.plugin.keys import JUDGING
from pytest_llmeval.plugin.keys import UNMARKED
from pytest_llmeval.plugin.options import NO_MODEL
from pytest_llmeval.plugin.options import names_model
from pytest_llmeval.plugin.options import skips_all
from pytest_llmeval.plugin.options import why_skipped

if TYPE_CHECKING:
    from pytest_llmeval.plugin.process import Termination

_COLLECTING: pytest.StashKey[Termination] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "llmeval(benchmark, protocol=None): evaluate the model on every item of a benchmark;"
        " the test takes `answer` (or `item` and `model`)",
    )
    try:
        dry_run = options.is_dry_run(config)
    except ConfigError as mistake:
        raise pytest.UsageError(str(mistake)) from mistake
    if dry_run:
        # Nothing is run, so xdist, which looks at these after us, starts no workers.
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], 0
    if _expects_items(config):
        _end_collection_by_sigterm(config)


def _expects_items(config: pytest.Config) -> bool:
    """True if an option names a model, or a module that pytest has loaded has a ``model`` fixture.

    That of a conftest.py which pytest loads during the collection is not known yet.
    """
    try:
        if skips_all(config):
            return False
        if names_model(config):
            return True
    except ConfigError:
        return False  # reported when the first marked test needs the setting
    return any(
        isinstance(plugin, ModuleType) and plugin.__name__ != __name__ and "model" in vars(plugin)
        for plugin in config.pluginmanager.get_plugins()
    )


def _end_collection_by_sigterm(config: pytest.Config) -> None:
    """Have SIGTERM end the collection of tests, which may read large data, as Ctrl-C does."""
    if _COLLECTING not in config.stash:
        from pytest_llmeval.plugin.process import Termination

        config.stash[_COLLECTING] = Termination(config)


def _leave_collection(config: pytest.Config) -> None:
    if _COLLECTING in config.stash:
        config.stash[_COLLECTING].restore()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("llmeval")
    if marker is None:
        return
    skipped = "item" in metafunc.fixturenames and why_skipped(metafunc.definition) is not None
    if skipped and not metafunc.config.option.collectonly:
        return
    collected = _answering(metafunc.config).collected
    try:
        collected.parametrize(metafunc, marker)
    except ConfigError as error:
        # Only collecting: an error of this file, if the test was to be evaluated at all.
        if not skipped:
            raise pytest.Collector.CollectError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip marked tests that are not to be evaluated; refuse those that cannot be parametrized.

    They would pass unevaluated. A session of nothing but tests without a model is a mistake, not a
    success: it is refused.
    """
    reasons: set[str | None] = set()
    for test in items:
        if test.get_closest_marker("llmeval") is None:
            reasons.add(None)
            continue
        evaluable = "item" in getattr(test, "fixturenames", ())
        reason = why_skipped(test) if evaluable else None
        reasons.add(reason)
        if reason is not None:
            test.add_marker(pytest.mark.skip(reason=reason))
            continue
        callspec = getattr(test, "callspec", None)
        answering = config.pluginmanager.get_plugin(ANSWERING)
        problems = answering.collected.problems if answering is not None else {}
        if (callspec is None or "item" not in callspec.params) and test.nodeid not in problems:
            _end(
                config,
                f"{test.nodeid} is marked llmeval but cannot be evaluated: the marker must be on"
                " a plain test function or class (not unittest) that uses `answer` or `item`, and"
                " cannot be added later",
            )
    if reasons == {NO_MODEL} and not config.option.collectonly:
        _end(config, NO_MODEL)
    config.stash[COLLECTED] = True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let a user's mistake end the session in one line instead of a collection traceback."""
    report = yield
    call = getattr(report, "call", None)
    mistake = call.excinfo.value if call is not None and call.excinfo is not None else None
    if not isinstance(mistake, ConfigError):
        return report
    _end(collector.config, str(mistake))
    report.outcome, report.longrepr, report.result = "passed", None, []
    return report


def _end(config: pytest.Config, mistake: str) -> None:
    """End the session for a user's mistake. Returns in an xdist worker, which cannot end it."""
    from pytest_llmeval.core.plan import Plan
    from pytest_llmeval.plugin.worker_channel import Exchange

    exchange = Exchange.here(config)
    if exchange is None:
        # pytest ends the collection as if all were well even so: nothing may be planned then.
        config.pluginmanager.unregister(name=ANSWERING)
        raise pytest.UsageError(mistake)
    exchange.leave_plan(Plan(problem=mistake))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a model on the command line with nothing to evaluate it on: that is no success."""
    config = session.config
    if COLLECTED not in config.stash:
        return
    _leave_collection(config)
    worker = hasattr(config, "workerinput")
    if worker or config.getoption("collectonly") or not config.getoption("--llm-model"):
        return
    if not any(test.get_closest_marker("llmeval") for test in session.items):
        from pytest_llmeval.plugin.controller import require_marked_tests

        require_marked_tests(config)


def _answering(config: pytest.Config) -> Any:
    plugin = config.pluginmanager.get_plugin(ANSWERING)
    if plugin is None:
        from pytest_llmeval.plugin.worker import Answering

        _end_collection_by_sigterm(config)
        plugin = Answering(config)
        config.pluginmanager.register(plugin, ANSWERING)
    return plugin


# Fixtures ----------------------------------------------------------------------------------


@pytest.fixture
def item(request: pytest.FixtureRequest) -> Any:
    """The benchmark item of this test."""
    # A marked test is parametrized, unless its items cannot be had.
    answering = request.config.pluginmanager.get_plugin(ANSWERING)
    problems = {} if answering is None else answering.collected.problems
    pytest.fail(problems.get(request.node.nodeid, UNMARKED), pytrace=False)


@pytest.fixture(scope="session")
def model(request: pytest.FixtureRequest) -> Any:
    """The model under evaluation (``--llm-model``); weights are loaded by its first answer.

    Override it in a ``conftest.py`` to evaluate a system of your own: return an object with
    ``answer(requests)``, or a function from prompt to text.
    """
    answering = request.config.pluginmanager.get_plugin(ANSWERING)
    if answering is None:
        pytest.fail(UNMARKED, pytrace=False)
    return answering.load_model(getattr(request, "param", None))


@pytest.fixture
def answer(request: pytest.FixtureRequest, item: Any, model: Any) -> Any:
    """The model's answer to this test's item, with its outcome."""
    answering: Any = request.config.pluginmanager.get_plugin(ANSWERING)
    return answering.answer(request.node, model)


# xdist -------------------------------------------------------------------------------------


_EXCHANGE = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.config.stash[_EXCHANGE] = node.workerinput["testrunuid"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what workers may have left after a session that ended early."""
    if _EXCHANGE in config.stash:
        from pytest_llmeval.plugin.worker_channel import Exchange

        Exchange.for_run(config.stash[_EXCHANGE]).remove()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Generator[None, Any, Any]:
    from pytest_llmeval.plugin.scheduler import DeferredScheduling

    default = yield

    def choose() -> Any:
        if not config.pluginmanager.has_plugin(JUDGING):
            return None
        from pytest_llmeval.plugin.controller import make_scheduler

        return make_scheduler(config, default)

    return default if config.getoption("dist") == "each" else DeferredScheduling(default, choose)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Any) -> None:
    from pytest_llmeval.plugin.worker_channel import Exchange

    exchange = Exchange.for_run(node.workerinput["testrunuid"])
    if exchange.has_plan or node.config.getoption("--llm-model"):
        from pytest_llmeval.plugin.controller import judge_plan_of

        judge_plan_of(node)
    _leave_collection(node.config)
