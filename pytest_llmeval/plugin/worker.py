"""The answering side: has the plan made, answers its tests, and turns bodies into outcomes.

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
from pytest_llmeval.evaluation.evaluator import Recovered
from pytest_llmeval.evaluation.jobs import JobKind
from pytest_llmeval.evaluation.jobs import Runner
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.models import load_model
from pytest_llmeval.plugin.collection import Collected
from pytest_llmeval.plugin.controller import judge_here
from pytest_llmeval.plugin.controller import run_folder_here
from pytest_llmeval.plugin.dry_run import DryRun
from pytest_llmeval.plugin.dry_run import estimates
from pytest_llmeval.plugin.dry_run import lacking_jobs
from pytest_llmeval.plugin.item_answer import Answer
from pytest_llmeval.plugin.item_answer import reason
from pytest_llmeval.plugin.keys import COLLECTED
from pytest_llmeval.plugin.long_comparisons import bound_comparisons
from pytest_llmeval.plugin.model_pool import LoadedModels
from pytest_llmeval.plugin.options import read_settings
from pytest_llmeval.plugin.outcomes import CONTRADICTED
from pytest_llmeval.plugin.outcomes import REUSED
from pytest_llmeval.plugin.outcomes import SAMPLES_CONTRADICTED
from pytest_llmeval.plugin.outcomes import UNANSWERED
from pytest_llmeval.plugin.outcomes import attach
from pytest_llmeval.plugin.process import GarbageCollection
from pytest_llmeval.plugin.process import Termination
from pytest_llmeval.plugin.worker_channel import Exchange
from pytest_llmeval.storage.prompts import PromptedItems
from pytest_llmeval.storage.prompts import write_prompts
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.verdict_log import VerdictLog


class _Answered(NamedTuple):
    """The records of a test that was given its answer: of its own samples, and of its arms."""

    own: tuple[Record, ...]
    arms: tuple[Record, ...]


class Answering:
    """Hooks of the answering side."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.collected = Collected(config, self.settings)
        self._plan = Plan()
        self._evaluator: Evaluator | None = None
        self.models = LoadedModels(config, self.settings, lambda: run_folder_here(config))
        self._usage: UsageLog | None = None
        self._termination: Termination | None = None
        self._crashes_seen = -1
        #: By node id: of the test that is running, or run again by a plugin that does so.
        self._answered: dict[str, _Answered] = {}
        #: What xdist told this worker of itself, and where it meets the others; nothing elsewhere.
        self._worker: Mapping[str, Any] = getattr(config, "workerinput", {})
        self._exchange = Exchange.here(config)
        self._garbage = GarbageCollection()
        self._garbage.pause()
        config.add_cleanup(self._garbage.restore)

    # Collection ------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # tryfirst: xdist tells the controller in this hook, and the plan must lie ready then.
        try:
            self._make_plan(session)
        finally:
            self._garbage.resume(frozen=bool(self._plan.items))

    def _make_plan(self, session: pytest.Session) -> None:
        if COLLECTED not in self.config.stash:
            return  # interrupted
        option = self.config.option
        showing = ("collectonly", "showfixtures", "show_fixtures_per_test", "setupplan")
        if any(getattr(option, name, False) for name in showing):
            return
        if session.testsfailed and not option.continue_on_collection_errors:
            return  # pytest stops here: a file could not be collected
        try:
            self._refuse_problems(session.items)
            self._plan = self.collected.plan(session.items)
        except ConfigError as error:
            if self._exchange is None:
                raise pytest.UsageError(str(error)) from error
            self._plan = Plan(problem=str(error))
        idle = not self._plan.items and self._plan.shard is None and not self.settings.dry_run
        if idle and self._plan.problem is None:
            return  # other tests are run, or none
        bound_comparisons(self.config, self._plan.by_nodeid)
        if self.settings.dry_run:
            self.config.pluginmanager.register(self._dry_run())
        elif self._exchange is not None:
            self._termination = Termination(self.config)
            self._exchange.leave_plan(self._plan)
            self._exchange.enter(self._worker["workerid"])
        else:
            judge_here(self.config, self._plan, self.settings)

    def _refuse_problems(self, tests: Sequence[pytest.Item]) -> None:
        """Raise ConfigError for a selected test without items, if only marked tests are selected.

        Among ordinary tests, which are none of our business, that test fails alone.
        """
        problems = self.collected.problems
        broken = [problems[test.nodeid] for test in tests if test.nodeid in problems]
        if broken and all(test.get_closest_marker("llmeval") for test in tests):
            raise ConfigError(broken[0])

    def _dry_run(self) -> DryRun:
        specs = () if self._plan.own_model else self.settings.models
        prices = self.settings.prices
        try:
            models = {n: load_model(spec, **self.settings.endpoint) for n, spec in enumerate(specs)}
            about = (self._plan, list(self.collected.suite), self.collected.items)
            found = estimates(*about, models, prices)
            lacking = lacking_jobs(*about, self.settings)
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from error
        return DryRun(found, prices, lacking)

    # Running ---------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> bool | None:
        """Exempt items from pytest-timeout.

        The first test of a chunk waits for the weights and for the answers to all of the chunk.
        """
        return True if item.nodeid in self._plan.by_nodeid else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Let go of a test's records once it has been reported: they are on disk."""
        try:
            return (yield)
        finally:
            self._answered.clear()

    def load_model(self, spec: str | None) -> object:
        """The value of the `model` fixture: the model of a spec, by default the first."""
        return self.models.load(spec or self.settings.models[0])

    def answer(self, node: pytest.Item, model: object) -> Answer:
        """What the `answer` fixture returns. Fails the test (an error) without an answer."""
        answered = self._answered.get(node.nodeid)
        if answered is None:
            records = self._records(node, model)
            own = tuple(record for record in records if not record.arm)
            answered = self._answered[node.nodeid] = _Answered(own, records[len(own) :])
        own, records = answered.own, (*answered.own, *answered.arms)
        failed = [record.error for record in records if record.outcome is Outcome.ERROR]
        if failed:
            what = "samples" if len(own) == len(records) else "prompts"
            of = f" to {len(failed)} of {len(records)} {what}" if len(records) > 1 else ""
            pytest.fail(f"no answer{of}: {failed[0]}", pytrace=False)
        return Answer(self.collected.items[node.nodeid], own)

    def _records(self, node: pytest.Item, model: object) -> tuple[Record, ...]:
        """The test's records; where the session cannot go on, its end."""
        try:
            return self._evaluate().records(node.nodeid, self.models.model(model))
        except (UnanswerableError, ConfigError) as error:
            hopeless = str(error)
        node.session.shouldfail = hopeless
        pytest.fail(hopeless, pytrace=False)

    def _evaluate(self) -> Evaluator:
        if self._evaluator is None:
            about = (self._plan, list(self.collected.suite), self.collected.items)
            folder, arrivals = run_folder_here(self.config), Arrivals()
            self._usage = UsageLog(folder.usage)
            executors = Executors(self._open_runner, arrivals.note, VerdictLog(folder.verdicts))
            recorder = Recorder(*about, RecordWriter(folder.records), executors)
            self._evaluator = Evaluator(
                *about, recorder, arrivals, self._recover, self._upcoming, self._note_usage
            )
        return self._evaluator

    def _note_usage(self) -> None:
        """Have on disk what the models of this process have used. Raises UnanswerableError."""
        assert self._usage is not None
        try:
            self._usage.note(self.models.usage())
        except RunError as error:
            raise UnanswerableError(str(error)) from None

    def _open_runner(self, kind: JobKind) -> Runner:
        """A runner that leaves the other xdist workers their part of the machine."""
        return kind.open(self.settings, int(self._worker.get("workercount", 1)))

    def _upcoming(self) -> Iterable[int]:
        """The chunks whose tests run in this process: all, or those a worker was sent so far."""
        if self._exchange is None:
            return self._plan.chunks
        return self._exchange.assigned(self._worker["workerid"])

    def _recover(self) -> Recovered:
        """All records on disk, at the start and whenever a worker has died since."""
        crashed = [] if self._exchange is None else self._exchange.crashed()
        if len(crashed) == self._crashes_seen:
            return Recovered()
        self._crashes_seen = len(crashed)
        return Recovered(read_records(run_folder_here(self.config).records), crashed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Report a planned test, with its outcome on the report; leave other tests alone.

        A wrong answer is reported the way an expected failure is: pytest counts it neither
        as failed nor as passed, ``--lf`` does not run it again, JUnit shows it as skipped
        with its reason. Its traceback is never rendered, which would cost more than the test.
        """
        if item.nodeid not in self._plan.by_nodeid:
            return None
        outcome = _outcome(call)
        if outcome is None:
            if call.excinfo is not None and call.when != "teardown":
                self._leave_out(item)
            return self._setup_report(item, call) if call.when == "setup" else None
        records, contradicted = self._settle(item, outcome, call)
        answer = Answer(self.collected.items[item.nodeid], records)
        if len(records) == 1 or (outcome is Outcome.WRONG and answer.outcome is Outcome.UNPARSED):
            outcome = answer.outcome
        wrong = outcome in (Outcome.WRONG, Outcome.UNPARSED)
        if wrong and not self.settings.wrong_fails:
            quiet = copy.copy(call)
            quiet.excinfo = None
            report = pytest.TestReport.from_item_and_call(item, quiet)
            report.outcome = "skipped"
            report.wasxfail = reason(answer)
        else:
            report = pytest.TestReport.from_item_and_call(item, call)
        remarks = [REUSED] if item.nodeid in self._evaluate().reused else []
        if contradicted:
            remarks.append(SAMPLES_CONTRADICTED if len(records) > 1 else CONTRADICTED)
        if outcome is Outcome.ERROR and item.nodeid not in self._answered:
            remarks.append(UNANSWERED)
        attach(report, outcome, remarks)
        return report

    def _setup_report(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """A setup that took as long as the item's share of its batch.

        The first test of a batch waits for all of it; booked so, its time would say nothing.
        """
        answered = self._answered.get(item.nodeid)
        if answered is None:
            return None
        seconds = Answer(self.collected.items[item.nodeid], answered.own).seconds
        if seconds is None:
            return None
        shared = copy.copy(call)
        shared.duration = seconds
        return pytest.TestReport.from_item_and_call(item, shared)

    def _settle(
        self, item: pytest.Item, outcome: Outcome, call: pytest.CallInfo[None]
    ) -> tuple[tuple[Record, ...], bool]:
        """The final records of a test, and whether its body contradicts the scorer.

        The body has the last word over the scorer, but does not tell wrong from unparsed. With
        several samples it judges the item as a whole, and the scorer's outcomes stand.
        """
        answered = self._answered.get(item.nodeid)
        if answered is not None:
            records = answered.own
        else:
            # No answer was asked for: a test of `item` and `model` alone, or a setup that failed.
            model = getattr(item, "funcargs", {}).get("model")
            blank = self._evaluate().blank(item.nodeid, self.models.name_of(model))
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
        right = Outcome.CORRECT
        if len(records) > 1:
            return records, (outcome is right) != (scored is right) and outcome != Outcome.ERROR
        return records, outcome is right and scored is not right

    def _leave_out(self, item: pytest.Item) -> None:
        """Mark a test that was skipped after it had its answer: the item counts as not run."""
        answered = self._answered.get(item.nodeid, _Answered((), ()))
        for record in (*answered.own, *answered.arms):
            if record.content_free:
                continue  # it stands for other items, too
            self._save(item, replace(record, left_out=True))

    def _save(self, item: pytest.Item, record: Record) -> None:
        try:
            self._evaluate().recorder.settle(item.nodeid, record)
        except UnanswerableError as failure:
            item.session.shouldfail = str(failure)

    @property
    def warnings(self) -> list[str]:
        """What is to be told of this process's answering at the end."""
        own = self._evaluator.recorder.warnings if self._evaluator is not None else ()
        return [*own, *self.models.warnings(self.collected.suite.item_ids)]

    def stop(self) -> None:
        """Save what is here; nothing is written on its own after that."""
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
        self.models.close()
        if self._evaluator is not None:
            self._evaluator.recorder.close()
        if self._usage is not None:
            self._usage.close()
        if self._exchange is not None:
            self._exchange.leave(self._worker["workerid"])

    def keep_prompts(self) -> None:
        """Write the prompts into the run folder, for reports; one process does.

        At the end, when no model waits for it.
        """
        if self._evaluator is None:
            return
        if self._exchange is not None and not self._exchange.claim("prompts"):
            return  # another worker's plan is the same
        suite = list(self.collected.suite)
        items: list[dict[str, Item]] = [{} for _ in suite]
        for planned in self._plan.items:
            items[planned.result][planned.item] = self.collected.items[planned.nodeid]
        write_prompts(
            run_folder_here(self.config).path,
            (
                PromptedItems(
                    one.benchmark.name,
                    one.protocol,
                    one.dataset.pool,
                    [way.fingerprint for way in planned.ways],
                    own.values(),
                )
                for one, planned, own in zip(suite, self._plan.results, items, strict=False)
            ),
        )


def _outcome(call: pytest.CallInfo[None]) -> Outcome | None:
    """What a phase says about the item; None where it says nothing."""
    failure = call.excinfo
    if call.when == "teardown":
        return None
    if failure and failure.errisinstance((pytest.skip.Exception, pytest.xfail.Exception)):
        return None  # the test says that it does not measure anything
    if call.when == "setup":
        return None if failure is None else Outcome.ERROR
    if failure is None:
        return Outcome.CORRECT
    return Outcome.WRONG if failure.errisinstance(AssertionError) else Outcome.ERROR
