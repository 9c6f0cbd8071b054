"""Hooks of the process that runs tests: build the plan, provide `answer`, report outcomes.

Registered in the main process, or in every xdist worker, by the first marked test.
"""

from __future__ import annotations

import copy
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from typing import NamedTuple

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.evaluation.answers import Arrivals
from pytest_llmeval.evaluation.code_executor import Executors
from pytest_llmeval.evaluation.evaluator import Evaluator
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.evaluation.jobs import JobKind
from pytest_llmeval.evaluation.jobs import Runner
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.requests import ChunkRequests
from pytest_llmeval.evaluation.requests import RecoveredRecords
from pytest_llmeval.plugin.collection import CollectedTests
from pytest_llmeval.plugin.controller import current_run_folder
from pytest_llmeval.plugin.controller import end_waves
from pytest_llmeval.plugin.controller import start_session
from pytest_llmeval.plugin.dry_run import make_dry_run
from pytest_llmeval.plugin.item_answer import Answer
from pytest_llmeval.plugin.item_answer import wrong_reason
from pytest_llmeval.plugin.keys import COLLECTION_COMPLETE
from pytest_llmeval.plugin.long_comparisons import shorten_comparisons
from pytest_llmeval.plugin.model_pool import ModelPool
from pytest_llmeval.plugin.options import read_settings
from pytest_llmeval.plugin.outcomes import CONTRADICTED
from pytest_llmeval.plugin.outcomes import REUSED
from pytest_llmeval.plugin.outcomes import SAMPLES_CONTRADICTED
from pytest_llmeval.plugin.outcomes import UNANSWERED
from pytest_llmeval.plugin.outcomes import attach_outcome
from pytest_llmeval.plugin.process import GarbageCollection
from pytest_llmeval.plugin.process import Termination
from pytest_llmeval.plugin.waves import Skips
from pytest_llmeval.plugin.waves import WaveRunner
from pytest_llmeval.plugin.waves import order_tests
from pytest_llmeval.plugin.worker_channel import WorkerChannel
from pytest_llmeval.storage.prompts import PromptedItems
from pytest_llmeval.storage.prompts import write_prompts
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.verdict_log import VerdictLog


class _AnsweredTest(NamedTuple):
    """Records of an answered test: those of its samples, and those of its arms."""

    samples: tuple[Record, ...]
    arms: tuple[Record, ...]


class WorkerPlugin:
    """Plugin of a process that runs tests and requests answers for them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.collected = CollectedTests(config, self.settings)
        self._plan = Plan()
        self._evaluator: Evaluator | None = None
        self._running: pytest.Item | None = None
        self.models = ModelPool(config, self.settings, lambda: current_run_folder(config))
        self._usage: UsageLog | None = None
        self._termination: Termination | None = None
        self._crashes_seen = -1
        #: By node id: records of the running test, kept while a plugin reruns it.
        self._answered: dict[str, _AnsweredTest] = {}
        #: ``workerinput`` of an xdist worker; empty in any other process.
        self._worker: Mapping[str, Any] = getattr(config, "workerinput", {})
        self._channel = WorkerChannel.current(config)
        self._waves: WaveRunner | None = None
        self._garbage = GarbageCollection()
        self._garbage.pause()
        config.add_cleanup(self._garbage.restore)

    # Collection ------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # tryfirst: xdist notifies the controller in this hook, which then reads the plan.
        try:
            self._make_plan(session)
        finally:
            self._garbage.resume(frozen=bool(self._plan.items))

    def _make_plan(self, session: pytest.Session) -> None:
        if COLLECTION_COMPLETE not in self.config.stash:
            return  # interrupted
        option = self.config.option
        display_options = ("collectonly", "showfixtures", "show_fixtures_per_test", "setupplan")
        if any(getattr(option, name, False) for name in display_options):
            return
        if session.testsfailed and not option.continue_on_collection_errors:
            return  # pytest stops here: a file could not be collected
        try:
            self._refuse_problems(session.items)
            self._plan = self.collected.plan(session.items)
        except ConfigError as error:
            if self._channel is None:
                raise pytest.UsageError(str(error)) from error
            self._plan = Plan(problem=str(error))
        idle = not self._plan.items and self._plan.shard is None and not self.settings.dry_run
        if idle and self._plan.problem is None:
            return  # no marked test is selected
        shorten_comparisons(self.config, self._plan.by_nodeid)
        if self.settings.dry_run:
            selection = (self._plan, list(self.collected.suite), self.collected.items)
            try:
                dry_run = make_dry_run(*selection, self.settings)
            except ConfigError as error:
                raise pytest.UsageError(str(error)) from error
            self.config.pluginmanager.register(dry_run)
        elif self._channel is not None:
            self._termination = Termination(self.config)
            self._channel.publish_plan(self._plan)
            self._channel.register_worker(self._worker["workerid"])
        else:
            self._start_main_session()
        if self._plan.chunk_waves and not self.settings.dry_run:
            order_tests(self._plan, session.items)
            self._waves = WaveRunner(self._plan, self._skips)
            self.config.pluginmanager.register(self._waves)

    def _start_main_session(self) -> None:
        """Start replicas and the session, in a session without xdist. Raises pytest.UsageError."""
        if self._plan.items and not self._plan.own_model:
            try:
                self.models.start_replicas()
            except ConfigError as error:
                raise pytest.UsageError(str(error)) from error
        start_session(self.config, self._plan, self.settings)

    def _skips(self, ended: int) -> Skips:
        """Return the items that are not needed after a number of complete waves."""
        if self._channel is not None:
            return self._channel.read_skips()  # decided before this test was released
        return end_waves(self.config, ended)

    def _refuse_problems(self, tests: Sequence[pytest.Item]) -> None:
        """Raise ConfigError for a selected test without items, if only marked tests are selected.

        If ordinary tests are selected as well, that test fails and the others run.
        """
        problems = self.collected.problems
        selected = [problems[test.nodeid] for test in tests if test.nodeid in problems]
        if selected and all(test.get_closest_marker("llmeval") for test in tests):
            raise ConfigError(selected[0])

    # Running ---------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> bool | None:
        """Exempt items from pytest-timeout.

        The first test of a chunk waits for the weights and for all answers of the chunk.
        """
        return True if item.nodeid in self._plan.by_nodeid else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Drop the records of a test after its report, to save memory; they are on disk."""
        self._running = item
        try:
            return (yield)
        finally:
            self._answered.clear()

    def load_model(self, spec: str | None) -> object:
        """Return the value of the `model` fixture: the model of a spec, by default the first."""
        return self.models.load(spec or self.settings.models[0])

    def answer(self, model: object) -> Answer:
        """Return the `answer` fixture of the running test; fail it (an error) without an answer."""
        node = self._running
        assert node is not None
        answered = self._answered.get(node.nodeid)
        if answered is None:
            records = self._answer_records(node, model)
            samples = tuple(record for record in records if not record.arm)
            answered = self._answered[node.nodeid] = _AnsweredTest(samples, records[len(samples) :])
        samples, records = answered.samples, (*answered.samples, *answered.arms)
        failed = [
            record.error
            for record in records
            if record.outcome is Outcome.ERROR and not record.order_test
        ]
        if failed:
            noun = "samples" if len(samples) == len(records) else "prompts"
            share = f" to {len(failed)} of {len(records)} {noun}" if len(records) > 1 else ""
            pytest.fail(f"no answer{share}: {failed[0]}", pytrace=False)
        return Answer(self.collected.items[node.nodeid], samples)

    def _answer_records(self, node: pytest.Item, model: object) -> tuple[Record, ...]:
        """Return the test's records; stop the session if no test can be answered."""
        try:
            return self._get_evaluator().records(node.nodeid, self.models.model(model))
        except (UnanswerableError, ConfigError) as error:
            message = str(error)
        node.session.shouldfail = message
        pytest.fail(message, pytrace=False)

    def _get_evaluator(self) -> Evaluator:
        if self._evaluator is None:
            selection = (self._plan, list(self.collected.suite), self.collected.items)
            folder, arrivals = current_run_folder(self.config), Arrivals()
            self._usage = UsageLog(folder.usage)
            executors = Executors(self._open_runner, arrivals.note, VerdictLog(folder.verdicts))
            recorder = Recorder(*selection, RecordWriter(folder.records), executors)
            requests = ChunkRequests(*selection, recorder, self._recover)
            self._evaluator = Evaluator(
                self._plan, requests, recorder, arrivals, self._assigned_chunks, self._write_usage
            )
        return self._evaluator

    def _write_usage(self) -> None:
        """Write the usage of this process's models to disk; raise UnanswerableError if that fails."""
        assert self._usage is not None
        try:
            self._usage.note(self.models.usage())
        except RunError as error:
            raise UnanswerableError(str(error)) from None

    def _open_runner(self, kind: JobKind) -> Runner:
        """Open a runner on the nodes of a cluster that have sandboxes, else on this machine.

        It uses this xdist worker's share of the machine.
        """
        cluster = self.models.cluster
        if cluster is not None:
            # It loads the connection to a cluster, which no other session needs.
            from pytest_llmeval.evaluation.node_jobs import NodeJobs
            from pytest_llmeval.evaluation.node_jobs import places_of

            if places_of(cluster):
                name = next(name for name, other in KINDS.items() if other is kind)
                return NodeJobs(cluster, name, self.settings)
        return kind.open(self.settings, int(self._worker.get("workercount", 1)))

    def _assigned_chunks(self) -> Iterable[int]:
        """Return the chunks of this process: all, or those that the xdist worker has been sent."""
        if self._channel is None:
            if self._waves is None:
                return self._plan.chunks
            wave = self._waves.wave
            return [n for n, of in enumerate(self._plan.chunk_waves) if of == wave]
        return self._channel.assigned_chunks(self._worker["workerid"])

    def _recover(self) -> RecoveredRecords:
        """Return all records on disk, at the start and after every crash of a worker."""
        crashed = [] if self._channel is None else self._channel.crashed_tests()
        if len(crashed) == self._crashes_seen:
            return RecoveredRecords()
        self._crashes_seen = len(crashed)
        return RecoveredRecords(read_records(current_run_folder(self.config).records), crashed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Report a planned test, with its outcome attached; ignore other tests.

        A wrong answer is reported like an expected failure: pytest counts it neither as failed
        nor as passed, ``--lf`` does not rerun it, JUnit shows it as skipped with its reason. Its
        traceback is not rendered, which would take longer than the test.
        """
        if item.nodeid not in self._plan.by_nodeid:
            return None
        outcome = _phase_outcome(call)
        if outcome is None:
            if call.excinfo is not None and call.when != "teardown":
                self._mark_left_out(item)
            return self._setup_report(item, call) if call.when == "setup" else None
        records, contradicted = self._write_final_records(item, outcome, call)
        answer = Answer(self.collected.items[item.nodeid], records)
        if len(records) == 1 or (outcome is Outcome.WRONG and answer.outcome is Outcome.UNPARSED):
            outcome = answer.outcome
        wrong = outcome in (Outcome.WRONG, Outcome.UNPARSED)
        if wrong and not self.settings.wrong_fails:
            passed = copy.copy(call)
            passed.excinfo = None
            report = pytest.TestReport.from_item_and_call(item, passed)
            report.outcome = "skipped"
            report.wasxfail = wrong_reason(answer)
        else:
            report = pytest.TestReport.from_item_and_call(item, call)
        remarks = [REUSED] if item.nodeid in self._get_evaluator().requests.reused else []
        if contradicted:
            remarks.append(SAMPLES_CONTRADICTED if len(records) > 1 else CONTRADICTED)
        if outcome is Outcome.ERROR and item.nodeid not in self._answered:
            remarks.append(UNANSWERED)
        attach_outcome(report, outcome, remarks)
        return report

    def _setup_report(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Return a setup report with the item's share of its batch's time as duration.

        The first test of a batch waits for the whole batch, so its measured time means nothing.
        """
        answered = self._answered.get(item.nodeid)
        if answered is None:
            return None
        seconds = Answer(self.collected.items[item.nodeid], answered.samples).seconds
        if seconds is None:
            return None
        shortened = copy.copy(call)
        shortened.duration = seconds
        return pytest.TestReport.from_item_and_call(item, shortened)

    def _write_final_records(
        self, item: pytest.Item, outcome: Outcome, call: pytest.CallInfo[None]
    ) -> tuple[tuple[Record, ...], bool]:
        """Write and return the final records of a test, and whether it contradicts the scorer.

        The test's result overrules the scorer, but cannot distinguish wrong from unparsed. With
        several samples it applies to the item as a whole, and the scorer's outcomes are kept.
        """
        answered = self._answered.get(item.nodeid)
        if answered is not None:
            records = answered.samples
        else:
            # No answer was requested: the test uses only `item` and `model`, or its setup failed.
            model = getattr(item, "funcargs", {}).get("model")
            blank = self._get_evaluator().requests.blank(
                item.nodeid, self.models.used_model_name(model)
            )
            records = (replace(blank, outcome=outcome),)
        scored = Answer(self.collected.items[item.nodeid], records).outcome
        if outcome is Outcome.WRONG and scored is Outcome.UNPARSED:
            outcome = scored
        if outcome is Outcome.ERROR and call.excinfo is not None:
            if not any(record.error for record in records):
                error = replace_lone_surrogates(call.excinfo.exconly(tryshort=True))
                records = tuple(replace(record, outcome=outcome, error=error) for record in records)
        elif len(records) == 1 and outcome is not scored:
            records = (replace(records[0], outcome=outcome, error=None),)
        for record in records:
            self._save(item, record)
        correct = Outcome.CORRECT
        if len(records) > 1:
            return records, (outcome is correct) != (scored is correct) and outcome != Outcome.ERROR
        return records, outcome is correct and scored is not correct

    def _mark_left_out(self, item: pytest.Item) -> None:
        """Mark the records of a test that was skipped after its answer: the item counts as not run."""
        answered = self._answered.get(item.nodeid, _AnsweredTest((), ()))
        for record in (*answered.samples, *answered.arms):
            if record.content_free or record.order_test:
                continue  # shared by several items, or independent of the test
            self._save(item, replace(record, left_out=True))

    def _save(self, item: pytest.Item, record: Record) -> None:
        try:
            self._get_evaluator().recorder.write_final(item.nodeid, record)
        except UnanswerableError as failure:
            item.session.shouldfail = str(failure)

    @property
    def warnings(self) -> list[str]:
        """Warnings of this process, for the end of the session."""
        recorded = self._evaluator.recorder.warnings if self._evaluator is not None else ()
        return [*recorded, *self.models.warnings(self.collected.suite.item_ids)]

    def stop(self) -> None:
        """Write all pending records; no background thread writes after that."""
        if self._evaluator is not None:
            self._evaluator.end()

    def pytest_sessionfinish(self) -> None:
        if self._termination is not None:
            self._termination.end()
        if hasattr(self.config, "workeroutput"):
            warnings = self.warnings
            self.stop()
            try:
                self.keep_prompts()
            except RunError as error:
                warnings.append(str(error))
            self.config.workeroutput["llmeval_warnings"] = warnings
        if self._evaluator is not None:
            self._evaluator.recorder.close()
        self.models.close()  # after the sandboxes, which may be on the cluster of the replicas
        if self._usage is not None:
            self._usage.close()
        if self._channel is not None:
            self._channel.unregister_worker(self._worker["workerid"])

    def keep_prompts(self) -> None:
        """Write the prompts into the run folder, for reports, if no other process has.

        Called at the end of the session, so that it delays no request.
        """
        if self._evaluator is None:
            return
        if self._channel is not None and not self._channel.claim_task("prompts"):
            return  # another worker's plan is the same
        suite = list(self.collected.suite)
        items: list[dict[str, Item]] = [{} for _ in suite]
        for planned in self._plan.items:
            items[planned.result][planned.item] = self.collected.items[planned.nodeid]
        write_prompts(
            current_run_folder(self.config).path,
            (
                PromptedItems(
                    evaluated.benchmark.name,
                    evaluated.protocol,
                    evaluated.dataset.pool,
                    [variant.fingerprint for variant in planned.ways],
                    by_id.values(),
                )
                for evaluated, planned, by_id in zip(suite, self._plan.results, items, strict=False)
            ),
        )


def _phase_outcome(call: pytest.CallInfo[None]) -> Outcome | None:
    """Return the outcome that a phase of a test gives its item; None if it gives none."""
    failure = call.excinfo
    if call.when == "teardown":
        return None
    if failure and failure.errisinstance((pytest.skip.Exception, pytest.xfail.Exception)):
        return None  # skipped by the test itself: nothing is measured
    if call.when == "setup":
        return None if failure is None else Outcome.ERROR
    if failure is None:
        return Outcome.CORRECT
    return Outcome.WRONG if failure.errisinstance(AssertionError) else Outcome.ERROR
