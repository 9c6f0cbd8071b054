"""The judging side: gathers outcomes from reports, decides gates, prints, sets the exit code.

Registered in the main process, or in the xdist controller, once there is a plan.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.planner import CHUNK_SIZE
from pytest_llmeval.gates import STATUSES_WITHOUT_VALUE
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.plugin.junit_subjects import SubjectCases
from pytest_llmeval.plugin.keys import ANSWERING
from pytest_llmeval.plugin.keys import COLLECTED
from pytest_llmeval.plugin.keys import JUDGING
from pytest_llmeval.plugin.options import moved_rootdir
from pytest_llmeval.plugin.options import read_settings
from pytest_llmeval.plugin.outcomes import ItemErrors
from pytest_llmeval.plugin.outcomes import outcome_of
from pytest_llmeval.plugin.process import Termination
from pytest_llmeval.plugin.process import paused
from pytest_llmeval.plugin.progress import Progress
from pytest_llmeval.plugin.scheduler import LEAST_PENDING
from pytest_llmeval.plugin.scheduler import ChunkScheduling
from pytest_llmeval.plugin.session import RunSession
from pytest_llmeval.plugin.worker_channel import Exchange
from pytest_llmeval.reports.ci import report_to_job
from pytest_llmeval.reports.formatting import WIDTH
from pytest_llmeval.reports.formatting import bound_report_texts
from pytest_llmeval.reports.formatting import bounded_text
from pytest_llmeval.reports.formatting import display_nodeid
from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.reports.formatting import wrap_text
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.terminal.summary import write_summary
from pytest_llmeval.reports.wording import verdict_headline
from pytest_llmeval.runs.judging import read_judged
from pytest_llmeval.storage.folder import RunFolder

# How long the workers of an interrupted session may take to end: within a forward pass, say.
_WORKERS_END_SECONDS = 5


def judge_here(config: pytest.Config, plan: Plan, settings: Settings) -> None:
    """Start judging in the main process, unless its collection was interrupted.

    Raises pytest.UsageError for a user's mistake.
    """
    if COLLECTED in config.stash:
        _judge(config, plan, settings)


def _judge(config: pytest.Config, plan: Plan, settings: Settings) -> None:
    termination = Termination(config)  # before there is a run that it could leave half made
    try:
        run = RunSession(
            plan, settings, [str(argument) for argument in config.invocation_params.args]
        )
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error
    # At once: what it registers removes the folder if a signal comes before the first answer.
    errors = ItemErrors(config, plan)
    config.pluginmanager.register(errors)
    config.pluginmanager.register(Judging(config, run, errors, termination), JUDGING)
    if (moved := moved_rootdir(config)) is not None:
        run.notes.append(moved)
    unread = None if settings.thresholds is not None else _unread_thresholds(config, plan)
    if unread is not None:
        run.ungated = f"nothing was gated: {unread} is read only if --llm-thresholds names it"
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        for note in run.notes:
            line = note if config.get_verbosity() > 0 else wrap_text(note)
            terminal.write_line(escape_workflow_commands(line), yellow=True)


def _unread_thresholds(config: pytest.Config, plan: Plan) -> str | None:
    """A thresholds.toml that somebody may take for the one in force: beside a test, or above it.

    As one would type it where pytest was started.
    """
    root, here = config.rootpath, config.invocation_params.dir
    tests = dict.fromkeys((root / item.nodeid.partition("::")[0]).parent for item in plan.items)
    for folder in dict.fromkeys((*tests, root, here)):
        if os.path.lexists(folder / "thresholds.toml"):
            return os.path.relpath(folder / "thresholds.toml", here)
    return None


def judge_plan_of(node: Any) -> None:
    """In the xdist controller: start judging as soon as the first worker has left a plan."""
    config = node.config
    exchange = Exchange.for_run(node.workerinput["testrunuid"])
    if _judging(config) is not None:
        return
    plan = exchange.read_plan()
    if plan is None:
        require_marked_tests(config)
        return
    try:
        if config.getoption("dist") == "each":
            raise pytest.UsageError("--dist=each would have every worker answer every item")
        if plan.problem is not None:
            raise pytest.UsageError(plan.problem)
        _judge(config, plan, read_settings(config))
    except pytest.UsageError:
        exchange.remove()
        raise
    judging = _judging(config)
    assert judging is not None
    judging.exchange = exchange
    exchange.leave_run(judging.run.folder.path)


def require_marked_tests(config: pytest.Config) -> None:
    """A model named on the command line and nothing to evaluate it on is no success (rule 2 of ARCHITECTURE.md)."""
    arguments = [str(argument) for argument in config.invocation_params.args]
    if not config.getoption("--llm-skip") and any(
        argument.partition("=")[0] == "--llm-model" for argument in arguments
    ):
        raise pytest.UsageError(
            "--llm-model is given, but no test marked @pytest.mark.llmeval was selected"
        )


def run_folder_here(config: pytest.Config) -> RunFolder:
    """The run folder, seen from the answering side."""
    exchange = Exchange.here(config)
    if exchange is not None:
        return RunFolder(exchange.read_run())
    judging = _judging(config)
    assert judging is not None
    return judging.run.folder


def _judging(config: pytest.Config) -> Judging | None:
    plugin: Judging | None = config.pluginmanager.get_plugin(JUDGING)
    return plugin


def make_scheduler(config: pytest.Config, default: Any) -> ChunkScheduling:
    """The scheduler in place of xdist's, for a session that is judged."""
    judging = _judging(config)
    assert judging is not None
    return ChunkScheduling(
        default.numnodes,  # of all workers; some may not have reported yet
        judging.run.plan,
        config.getoption("dist"),
        judging.crashed,
        judging.give_up,
        judging.assign,
        2 * CHUNK_SIZE if judging.run.prefetches else LEAST_PENDING,
    )


class Judging:
    """Hooks of the judging side."""

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
        self.exchange: Exchange | None = None
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
        self._progress = Progress.start(config, run.folder.records, run.plan)

    def crashed(self, nodeid: str) -> None:
        """Tell the other workers, before they are given the dead one's chunks."""
        if self.exchange is not None:
            self.exchange.note_crash(nodeid)

    def assign(self, worker: str, chunk: int) -> None:
        """Tell a worker which chunk it is going to be sent, so that it may begin ahead."""
        if self.exchange is not None:
            self.exchange.assign(worker, chunk)

    def give_up(self, nodeids: list[str]) -> None:
        """Report tests as errors whose chunk has cost several workers."""
        for nodeid in nodeids:
            message = "not answered: the items asked together with it crashed several workers"
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
            self.run.outcomes.receive(report, outcome)
        elif report.failed and report.when != "teardown":
            # The report of a dead worker's test has no phase.
            try:
                self.run.receive_failure(report.nodeid, report.longreprtext)
            except RunError as error:
                self._failed_to_write = str(error)
        bound_report_texts(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
        """Count wrong answers and gates under their own names.

        Neither letter nor word keeps pytest from printing anything: Progress shows how far a
        run is, and thousands of letters do not. With ``-v`` every item has its line, and in the
        summary that ``-rA`` asks for its word.
        """
        if isinstance(report, GateReport):
            return report.category if report.when == "call" else "", "", ""
        outcome = outcome_of(report)
        if outcome is None or report.outcome not in ("passed", "skipped"):
            return None  # a failure, or an attempt that another plugin has had repeated
        category = "passed" if outcome == Outcome.CORRECT else outcome
        lines = self.config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
        if not lines and not self._ended:
            return category, "", ""
        color = "green" if outcome == Outcome.CORRECT else "yellow"
        return category, "", (category.upper(), {color: True})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the warnings of xdist's workers."""
        if self.exchange is not None:
            self.exchange.leave(node.gateway.id)
        output = getattr(node, "workeroutput", {})
        self._warnings += output.get("llmeval_warnings", [])

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        # Under xdist, -x and a worker that gives up end the session by an exception of its own;
        # without it they end in failure. The exit code should be the same.
        self._stopped_by_xdist = excinfo.type.__module__.startswith("xdist.")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        # tryfirst: gates must be reported before JUnit and the terminal close their books.
        self._termination.end()
        interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        if self._progress is not None:
            self._progress.stop()
        if self.exchange is not None:
            _end_workers(self.exchange)
            self.exchange.remove()
        try:
            answering = self.config.pluginmanager.get_plugin(ANSWERING)
            if answering is not None:
                answering.stop()
                self._warnings = answering.warnings
                with paused():
                    answering.keep_prompts()
            self.run.notes += dict.fromkeys(self._warnings)
            # xdist takes the loss of its last worker for an ordinary end.
            lost = len(self._reported) < len(self.run.plan.by_nodeid)
            cut_short = bool(interrupted or session.shouldfail or session.shouldstop or lost)
            with paused():
                self.run.finish(cut_short, self._failed)
        except RunError as error:
            self._failed_to_write = str(error)
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
                job = report_to_job(lambda: read_judged(folder), os.environ)
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
        # Item errors that `max_errors` allows for are no failure of the build.
        tolerated = session.testsfailed == len(self._failed)
        if exitstatus == pytest.ExitCode.TESTS_FAILED and tolerated and not red:
            return pytest.ExitCode.OK
        return exitstatus

    def _report_gates(self, session: pytest.Session) -> None:
        """Report every gate as a test to plugins that write reports, and count it in the terminal.

        The session would count a red gate as a failing test towards ``--maxfail``, and ``--lf``,
        ``--ff`` and ``--stepwise`` would look for it in a file. A terminal of another plugin may
        measure its progress by the tests that were collected.
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
                # The last line turns red by this key; no test is counted as failed.
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
            None if judged is None else judged.compared,
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


def _end_workers(exchange: Exchange) -> None:
    """Have workers end that an interrupted session has left at work, before the run is summed up.

    Theirs is the last word about what they answer, and only they can remove their sandboxes.
    """
    until = time.monotonic() + _WORKERS_END_SECONDS
    end = signal.SIGTERM
    while workers := exchange.working():
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, end)
        if end != signal.SIGTERM:
            return
        while exchange.working() and time.monotonic() < until:
            time.sleep(0.02)
        end = signal.SIGKILL


class GateReport(pytest.TestReport):
    """A gate as a test: ``thresholds.toml::mmlu::accuracy``."""

    def __init__(self, file: str, verdict: Verdict, outcome: Any, when: Any) -> None:
        text = bounded_text(verdict_line(verdict))
        longrepr: Any = {"passed": None, "failed": text, "skipped": (file, 0, text)}[outcome]
        super().__init__(
            nodeid=display_nodeid(f"{file}::{verdict.id}"),
            location=(file, None, display_nodeid(verdict.id)),
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when=when,
        )
        self.category = f"gates {verdict.state}"
