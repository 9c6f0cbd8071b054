"""Hooks of the process that reports: collect outcomes, judge the run, print, set the exit code.

Registered in the main process, or in the xdist controller, once there is a plan.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.planner import CHUNK_SIZE
from pytest_llmeval.gates import STATUSES_WITHOUT_VALUE
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.plugin.junit_subjects import SubjectCases
from pytest_llmeval.plugin.keys import COLLECTION_COMPLETE
from pytest_llmeval.plugin.keys import CONTROLLER_PLUGIN
from pytest_llmeval.plugin.keys import WORKER_PLUGIN
from pytest_llmeval.plugin.options import read_settings
from pytest_llmeval.plugin.options import rootdir_warning
from pytest_llmeval.plugin.outcomes import GateReport
from pytest_llmeval.plugin.outcomes import ItemErrors
from pytest_llmeval.plugin.outcomes import outcome_of
from pytest_llmeval.plugin.process import Termination
from pytest_llmeval.plugin.process import no_garbage_collection
from pytest_llmeval.plugin.progress import Progress
from pytest_llmeval.plugin.scheduler import LEAST_PENDING
from pytest_llmeval.plugin.scheduler import ChunkScheduling
from pytest_llmeval.plugin.scheduler import WaveScheduling
from pytest_llmeval.plugin.session import RunSession
from pytest_llmeval.plugin.waves import Skips
from pytest_llmeval.plugin.worker_channel import WorkerChannel
from pytest_llmeval.reports.ci import report_to_job
from pytest_llmeval.reports.formatting import WIDTH
from pytest_llmeval.reports.formatting import bound_report_texts
from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.reports.formatting import wrap_text
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.terminal.summary import write_summary
from pytest_llmeval.reports.wording import verdict_headline
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.storage.folder import RunFolder

_WORKERS_END_SECONDS = 5
"""Time for the workers of an interrupted session to end, for example within a forward pass."""


def start_session(config: pytest.Config, plan: Plan, settings: Settings) -> None:
    """Register the controller in the main process, unless the collection was interrupted.

    Raises pytest.UsageError for invalid options, models, thresholds or baselines.
    """
    if COLLECTION_COMPLETE in config.stash:
        _start(config, plan, settings)


def _start(config: pytest.Config, plan: Plan, settings: Settings) -> None:
    termination = Termination(config)  # before the run folder is created
    try:
        run = RunSession(
            plan, settings, [str(argument) for argument in config.invocation_params.args]
        )
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error
    # Immediately: on a signal before the first answer, the plugin removes the run folder.
    errors = ItemErrors(config, plan)
    config.pluginmanager.register(errors)
    config.pluginmanager.register(
        ControllerPlugin(config, run, errors, termination), CONTROLLER_PLUGIN
    )
    if (moved := rootdir_warning(config)) is not None:
        run.notes.append(moved)
    unused = None if settings.thresholds is not None else _unused_thresholds(config, plan)
    if unused is not None:
        run.no_gates_note = f"nothing was gated: {unused} is read only if --llm-thresholds names it"
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        for note in run.notes:
            line = note if config.get_verbosity() > 0 else wrap_text(note)
            terminal.write_line(escape_workflow_commands(line), yellow=True)


def _unused_thresholds(config: pytest.Config, plan: Plan) -> str | None:
    """Return the path of a ``thresholds.toml`` that is not in use; None if there is none.

    It is searched next to the tests, in the rootdir and in the invocation directory. The path is
    relative to the latter.
    """
    root, working_folder = config.rootpath, config.invocation_params.dir
    tests = dict.fromkeys((root / item.nodeid.partition("::")[0]).parent for item in plan.items)
    for folder in dict.fromkeys((*tests, root, working_folder)):
        if os.path.lexists(folder / "thresholds.toml"):
            return os.path.relpath(folder / "thresholds.toml", working_folder)
    return None


def start_from_worker_plan(node: Any) -> None:
    """Start the session in the xdist controller, once the first worker has published a plan."""
    config = node.config
    channel = WorkerChannel.for_run(node.workerinput["testrunuid"])
    if _controller_plugin(config) is not None:
        return
    plan = channel.read_plan()
    if plan is None:
        require_marked_tests(config)
        return
    try:
        if config.getoption("dist") == "each":
            raise pytest.UsageError(
                "--dist=each runs every item in every worker: use another --dist, such as load"
            )
        if plan.problem is not None:
            raise pytest.UsageError(plan.problem)
        _start(config, plan, read_settings(config))
    except pytest.UsageError:
        channel.remove()
        raise
    controller = _controller_plugin(config)
    assert controller is not None
    controller.channel = channel
    if controller.waves is not None:
        controller.waves.channel = channel
    channel.publish_run_folder(controller.run.folder.path)


def require_marked_tests(config: pytest.Config) -> None:
    """Raise UsageError if ``--llm-model`` is given and no marked test is selected.

    Such a session must not pass (rule 2 of ARCHITECTURE.md).
    """
    arguments = [str(argument) for argument in config.invocation_params.args]
    if not config.getoption("--llm-skip") and any(
        argument.partition("=")[0] == "--llm-model" for argument in arguments
    ):
        raise pytest.UsageError(
            "--llm-model is given, but no test marked @pytest.mark.llmeval was selected"
        )


def current_run_folder(config: pytest.Config) -> RunFolder:
    """Return the run folder, in the main process or in an xdist worker."""
    channel = WorkerChannel.current(config)
    if channel is not None:
        return RunFolder(channel.read_run_folder())
    controller = _controller_plugin(config)
    assert controller is not None
    return controller.run.folder


def end_waves(config: pytest.Config, number: int) -> Skips:
    """Decide the gates after a number of complete waves, in the main process."""
    controller = _controller_plugin(config)
    assert controller is not None
    assert controller.waves is not None
    return controller.waves.end_waves(number)


def _controller_plugin(config: pytest.Config) -> ControllerPlugin | None:
    plugin: ControllerPlugin | None = config.pluginmanager.get_plugin(CONTROLLER_PLUGIN)
    return plugin


def make_scheduler(config: pytest.Config, default: Any) -> ChunkScheduling:
    """Return the scheduler that replaces xdist's in a session with planned tests."""
    controller = _controller_plugin(config)
    assert controller is not None
    arguments = (
        default.numnodes,  # all workers, including those that have not reported yet
        controller.run.plan,
        config.getoption("dist"),
        controller.crashed,
        controller.give_up,
        controller.assign,
        2 * CHUNK_SIZE if controller.run.models.prefetches else LEAST_PENDING,
    )
    if controller.waves is None:
        return ChunkScheduling(*arguments)
    waves = controller.waves
    return WaveScheduling(*arguments, needed=waves.needed, skip=waves.skip)


class ControllerPlugin:
    """Plugin of the process that reports: the main process, or the xdist controller."""

    def __init__(
        self,
        config: pytest.Config,
        run: RunSession,
        errors: ItemErrors,
        termination: Termination,
    ) -> None:
        self.config = config
        self.run = run
        self._errors = errors
        self._termination = termination
        self.channel: WorkerChannel | None = None
        self._failed_to_write: str | None = None
        self._warnings: list[str] = []
        self._failed: list[str] = []
        self._reported: set[str] = set()
        self._annotations: list[str] = []
        self._stopped_by_xdist = False
        self._ended = False
        #: Interrupted before the first report, such as while other workers collected their tests.
        self._is_void = False
        self._subjects = (
            SubjectCases(config, run.plan) if run.settings.junit == "subjects" else None
        )
        #: Decisions at the ends of waves; None if the run has no waves.
        self.waves = run.wave_decisions(config)
        worker = config.pluginmanager.get_plugin(WORKER_PLUGIN)
        models = None if worker is None else worker.models
        self._progress = Progress.start(
            config, run.folder.records, run.plan, lambda: "" if models is None else models.activity
        )
        if models is not None:
            run.record_replicas(models.descriptions())

    def crashed(self, nodeid: str) -> None:
        """Publish a crash to the other workers, before they get the chunks of the crashed one."""
        if self.channel is not None:
            self.channel.record_crash(nodeid)

    def assign(self, worker: str, chunk: int) -> None:
        """Publish the next chunk of a worker, so that it can send requests in advance."""
        if self.channel is not None:
            self.channel.record_assignment(worker, chunk)

    def give_up(self, nodeids: list[str]) -> None:
        """Report the tests of a chunk that crashed several workers as errors."""
        for nodeid in nodeids:
            message = "not answered: the items of its chunk crashed several workers"
            file = nodeid.split("::")[0]
            report = pytest.TestReport(
                nodeid=nodeid,
                location=(file, None, nodeid.partition("::")[2]),
                keywords={},
                outcome="failed",
                longrepr=message,
                when="setup",
            )
            self.config.hook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid not in self.run.plan.by_nodeid:
            return
        self._reported.add(report.nodeid)
        outcome = outcome_of(report)
        if report.failed and not hasattr(report, "wasxfail") and report.when != "teardown":
            self._failed.append(report.nodeid)
        if outcome is not None:
            self.run.outcomes.add(report, outcome)
        elif report.failed and report.when != "teardown":
            # The report of a crashed worker's test has no phase.
            try:
                self.run.record_failure(report.nodeid, report.longreprtext)
            except RunError as error:
                self._failed_to_write = str(error)
        bound_report_texts(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
        """Count wrong answers and gates under their own names.

        With an empty letter and word pytest prints nothing: `Progress` replaces thousands of
        letters. With ``-v`` every item has a line, and with ``-rA`` a line in the summary.
        """
        if isinstance(report, GateReport):
            return report.category if report.when == "call" else "", "", ""
        outcome = outcome_of(report)
        if outcome is None or report.outcome not in ("passed", "skipped"):
            return None  # a failure, or an attempt that another plugin repeats
        category = "passed" if outcome == Outcome.CORRECT else outcome
        is_verbose = self.config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
        if not is_verbose and not self._ended:
            return category, "", ""
        color = "green" if outcome == Outcome.CORRECT else "yellow"
        return category, "", (category.upper(), {color: True})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the warnings of xdist's workers."""
        if self.channel is not None:
            self.channel.unregister_worker(node.gateway.id)
        output = getattr(node, "workeroutput", {})
        self._warnings += output.get("llmeval_warnings", [])

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # -x, or a worker that cannot go on, ends the session: by an exception under xdist, as a
        # failure otherwise. The exit code is the same.
        self._stopped_by_xdist = excinfo.type.__module__.startswith("xdist.")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        # tryfirst: gates must be reported before the JUnit file and the summary are written.
        self._termination.end()
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        if self._progress is not None:
            self._progress.stop()
        if self.channel is not None:
            self.channel.end_workers(_WORKERS_END_SECONDS)
            self.channel.remove()
        try:
            worker = self.config.pluginmanager.get_plugin(WORKER_PLUGIN)
            if worker is not None:
                worker.stop()
                self.run.record_replicas(worker.models.descriptions())
                self._warnings = worker.warnings
                with no_garbage_collection():
                    worker.keep_prompts()
            self.run.notes += dict.fromkeys(self._warnings)
            # xdist treats the loss of its last worker as an ordinary end.
            lost = len(self._reported) < len(self.run.plan.by_nodeid)
            cut_short = bool(interrupted or session.shouldfail or session.shouldstop or lost)
            with no_garbage_collection():
                self.run.finish(cut_short, self._failed)
        except RunError as error:
            self._failed_to_write = str(error)
        if self.waves is not None and self.waves.problem is not None:
            self._failed_to_write = self.waves.problem
        empty = self._failed_to_write is None and self.run.is_empty
        self._is_void = empty and interrupted and not self._reported
        if not self._is_void:
            if self._subjects is not None:
                self._subjects.write(self.run.measurements)
            self._report_gates(session)
            self._write_reports()
        if empty:
            self.run.folder.remove()
        session.exitstatus = self._exit_code(session, exitstatus)
        self._ended = True

    def _write_reports(self) -> None:
        if self._failed_to_write is None:
            try:
                self.run.write_reports()
                folder = self.run.folder.path
                job = report_to_job(lambda: read_judged_run(folder), os.environ)
            except RunError as error:
                self._failed_to_write = str(error)
                return
            self.run.notes += job.notes
            self._annotations = job.annotations
            if not self.config.pluginmanager.hasplugin("terminalreporter"):
                for annotation in self._annotations:
                    print(annotation)

    def _exit_code(self, session: pytest.Session, exitstatus: int) -> int:
        if self._termination.received:
            return pytest.ExitCode.INTERRUPTED
        red = self.run.verdict == "fail" or self._failed_to_write is not None
        if exitstatus == pytest.ExitCode.OK and red:
            return pytest.ExitCode.TESTS_FAILED
        if exitstatus == pytest.ExitCode.INTERRUPTED and self._stopped_by_xdist:
            return pytest.ExitCode.TESTS_FAILED
        # Item errors within `max_errors` do not fail the session.
        tolerated = session.testsfailed == len(self._failed)
        if exitstatus == pytest.ExitCode.TESTS_FAILED and tolerated and not red:
            return pytest.ExitCode.OK
        return exitstatus

    def _report_gates(self, session: pytest.Session) -> None:
        """Report every gate as a test to plugins that write reports, and count it in the terminal.

        Left out are the session, which would count a failed gate towards ``--maxfail``, the plugins
        of ``--lf``, ``--ff`` and ``--stepwise``, which would search it in a file, and the terminal
        of another plugin, which may measure progress by the number of collected tests.
        """
        manager = self.config.pluginmanager
        terminal = manager.get_plugin("terminalreporter")
        replaced = terminal is not None and type(terminal) is not pytest.TerminalReporter
        names = ("lfplugin", "nfplugin", "stepwiseplugin")
        left_out = [session, terminal if replaced else None, *map(manager.get_plugin, names)]
        hook = manager.subset_hook_caller(
            "pytest_runtest_logreport", [plugin for plugin in left_out if plugin is not None]
        )
        verdicts = () if self.run.judged is None else self.run.judged.verdicts
        for verdict in group_subject_verdicts(verdicts, STATUSES_WITHOUT_VALUE):
            undecided = verdict.status == "undecided" and not self.run.settings.allow_undecided
            outcome = "failed" if verdict.status == "fail" or undecided else "skipped"
            if verdict.status == "pass":
                outcome = "passed"
            if outcome == "failed" and terminal is not None:
                # This key makes the last line red; no test is counted as failed.
                terminal.stats.setdefault("failed", [])
            report = GateReport(self.run.thresholds_name, verdict, outcome, "call")
            hook(report=report)
            hook(report=GateReport(self.run.thresholds_name, verdict, "passed", "teardown"))
            if replaced and terminal is not None:
                terminal.stats.setdefault(report.category, []).append(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        run, judged = self.run, self.run.judged
        if self._is_void:
            write_summary(terminalreporter, summary_parts((), None, (), None))
            return
        folder = run.folder.path if run.folder.path.exists() else None
        counts = {} if judged is None else count_states(judged.verdicts)
        items_failed = 0 if judged is None else judged.items_failed
        parts = summary_parts(
            [measurement.result for measurement in run.measurements.values()],
            judged.verdicts if judged is not None and run.gated else None,
            run.notes,
            folder,
            None if judged is None else judged.run_comparison,
            () if judged is None else judged.pairs,
            failures=self._errors.lines(),
            headline=verdict_headline(run.verdict, counts, items_failed),
            allowed=run.settings.allow_undecided,
            width=None if self.config.get_verbosity() > 0 else WIDTH,
        )
        write_summary(terminalreporter, parts)
        for annotation in self._annotations:
            terminalreporter.write_line(annotation)
        if self._failed_to_write is not None:
            terminalreporter.write_line(escape_workflow_commands(self._failed_to_write), red=True)
