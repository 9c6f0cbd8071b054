"""Entry point for pytest: options, the marker, the fixtures, and registration of the other plugins.

Only this module and ``options`` are loaded before a test marked ``@pytest.mark.llmeval`` is
collected; without one the plugin has no effect. The first marked test registers `WorkerPlugin`
(in the main process, or in every xdist worker), whose plan registers `ControllerPlugin` (in the
main process, or in the xdist controller).
"""

from __future__ import annotations

from collections.abc import Generator
from types import ModuleType
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.plugin import options
from pytest_llmeval.plugin.keys import COLLECTION_COMPLETE
from pytest_llmeval.plugin.keys import CONTROLLER_PLUGIN
from pytest_llmeval.plugin.keys import UNMARKED
from pytest_llmeval.plugin.keys import WORKER_PLUGIN
from pytest_llmeval.plugin.options import NO_MODEL
from pytest_llmeval.plugin.options import has_model_option
from pytest_llmeval.plugin.options import has_skip_option
from pytest_llmeval.plugin.options import skip_reason

if TYPE_CHECKING:
    from pytest_llmeval.plugin.process import Termination

_COLLECTING: pytest.StashKey[Termination] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_AnswerFixture(config.pluginmanager))
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
        # No test is run: xdist, which reads these options later, must not start workers.
        config.option.dist, config.option.tx, config.option.numprocesses = "no", [], 0
    if _expects_items(config):
        _end_collection_by_sigterm(config)


def _expects_items(config: pytest.Config) -> bool:
    """Return True if an option names a model, or a loaded module has a ``model`` fixture.

    A ``conftest.py`` that pytest loads during the collection is not considered.
    """
    try:
        if has_skip_option(config):
            return False
        if has_model_option(config):
            return True
    except ConfigError:
        return False  # reported when the first marked test needs the setting
    return any(
        isinstance(plugin, ModuleType) and plugin.__name__ != __name__ and "model" in vars(plugin)
        for plugin in config.pluginmanager.get_plugins()
    )


def _end_collection_by_sigterm(config: pytest.Config) -> None:
    """Make SIGTERM interrupt the collection, which may read large data, as Ctrl-C does."""
    if _COLLECTING not in config.stash:
        from pytest_llmeval.plugin.process import Termination

        config.stash[_COLLECTING] = Termination(config)


def _restore_sigterm(config: pytest.Config) -> None:
    if _COLLECTING in config.stash:
        config.stash[_COLLECTING].restore()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("llmeval")
    if marker is None:
        return
    skipped = "item" in metafunc.fixturenames and skip_reason(metafunc.definition) is not None
    if skipped and not metafunc.config.option.collectonly:
        return
    collected = _worker_plugin(metafunc.config).collected
    try:
        collected.parametrize(metafunc, marker)
    except ConfigError as error:
        # With --collect-only: an error of this file, unless the test is skipped.
        if not skipped:
            raise pytest.Collector.CollectError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip marked tests without a model; raise UsageError for those that cannot be parametrized.

    The latter would pass without an evaluation. A session in which all tests lack a model is a
    usage error as well.
    """
    reasons: set[str | None] = set()
    for test in items:
        if test.get_closest_marker("llmeval") is None:
            reasons.add(None)
            continue
        evaluable = "item" in getattr(test, "fixturenames", ())
        reason = skip_reason(test) if evaluable else None
        reasons.add(reason)
        if reason is not None:
            test.add_marker(pytest.mark.skip(reason=reason))
            continue
        callspec = getattr(test, "callspec", None)
        worker = config.pluginmanager.get_plugin(WORKER_PLUGIN)
        problems = worker.collected.problems if worker is not None else {}
        if (callspec is None or "item" not in callspec.params) and test.nodeid not in problems:
            _end(
                config,
                f"{test.nodeid} is marked llmeval but cannot be evaluated: the marker must be on"
                " a plain test function or class (not unittest) that uses `answer` or `item`, and"
                " it cannot be added after the collection",
            )
    if reasons == {NO_MODEL} and not config.option.collectonly:
        _end(config, NO_MODEL)
    config.stash[COLLECTION_COMPLETE] = True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """End the session with one line for a ConfigError, instead of a collection traceback."""
    report = yield
    call = getattr(report, "call", None)
    mistake = call.excinfo.value if call is not None and call.excinfo is not None else None
    if not isinstance(mistake, ConfigError):
        return report
    _end(collector.config, str(mistake))
    report.outcome, report.longrepr, report.result = "passed", None, []
    return report


def _end(config: pytest.Config, mistake: str) -> None:
    """End the session with a usage error; in an xdist worker, publish it for the controller."""
    from pytest_llmeval.core.plan import Plan
    from pytest_llmeval.plugin.worker_channel import WorkerChannel

    channel = WorkerChannel.current(config)
    if channel is None:
        # pytest calls the hooks of a complete collection nevertheless: no plan may be made then.
        config.pluginmanager.unregister(name=WORKER_PLUGIN)
        raise pytest.UsageError(mistake)
    channel.publish_plan(Plan(problem=mistake))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Raise UsageError if a model is given and no marked test is selected."""
    config = session.config
    if COLLECTION_COMPLETE not in config.stash:
        return
    _restore_sigterm(config)
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.getoption("collectonly") or not config.getoption("--llm-model"):
        return
    if not any(test.get_closest_marker("llmeval") for test in session.items):
        from pytest_llmeval.plugin.controller import require_marked_tests

        require_marked_tests(config)


def _worker_plugin(config: pytest.Config) -> Any:
    plugin = config.pluginmanager.get_plugin(WORKER_PLUGIN)
    if plugin is None:
        from pytest_llmeval.plugin.worker import WorkerPlugin

        _end_collection_by_sigterm(config)
        plugin = WorkerPlugin(config)
        config.pluginmanager.register(plugin, WORKER_PLUGIN)
    return plugin


# Fixtures ----------------------------------------------------------------------------------


@pytest.fixture
def item(request: pytest.FixtureRequest) -> Any:
    """Return the benchmark item of this test."""
    # A marked test is parametrized, unless its items could not be read.
    worker = request.config.pluginmanager.get_plugin(WORKER_PLUGIN)
    problems = {} if worker is None else worker.collected.problems
    pytest.fail(problems.get(request.node.nodeid, UNMARKED), pytrace=False)


@pytest.fixture(scope="session")
def model(request: pytest.FixtureRequest) -> Any:
    """Return the model under evaluation (``--llm-model``); its first answer loads the weights.

    Override it in a ``conftest.py`` to evaluate a custom model: return an object with
    ``answer(requests)``, or a function from prompt to text.
    """
    worker = request.config.pluginmanager.get_plugin(WORKER_PLUGIN)
    if worker is None:
        pytest.fail(UNMARKED, pytrace=False)
    return worker.load_model(getattr(request, "param", None))


class _AnswerFixture:
    """Plugin with the fixture ``answer``.

    As a method, it needs no ``request``, whose signature pytest inspects anew for every fixture that
    takes it: that was 3 % of the processor time of a run of 14,042 replayed items.
    """

    def __init__(self, plugins: pytest.PytestPluginManager) -> None:
        self._plugins = plugins

    @pytest.fixture
    def answer(self, item: Any, model: Any) -> Any:
        """Return the model's answer to this test's item, with its outcome."""
        worker: Any = self._plugins.get_plugin(WORKER_PLUGIN)
        return worker.answer(model)


# xdist -------------------------------------------------------------------------------------


_CHANNEL_ID = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.config.stash[_CHANNEL_ID] = node.workerinput["testrunuid"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the files of workers whose session ended early."""
    if _CHANNEL_ID in config.stash:
        from pytest_llmeval.plugin.worker_channel import WorkerChannel

        WorkerChannel.for_run(config.stash[_CHANNEL_ID]).remove()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Generator[None, Any, Any]:
    from pytest_llmeval.plugin.scheduler import DeferredScheduling

    default = yield

    def choose_scheduler() -> Any:
        if not config.pluginmanager.has_plugin(CONTROLLER_PLUGIN):
            return None
        from pytest_llmeval.plugin.controller import make_scheduler

        return make_scheduler(config, default)

    return (
        default
        if config.getoption("dist") == "each"
        else DeferredScheduling(default, choose_scheduler)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Any) -> None:
    from pytest_llmeval.plugin.worker_channel import WorkerChannel

    channel = WorkerChannel.for_run(node.workerinput["testrunuid"])
    if channel.has_plan or node.config.getoption("--llm-model"):
        from pytest_llmeval.plugin.controller import start_from_worker_plan

        start_from_worker_plan(node)
    _restore_sigterm(node.config)
