"""The answering side: collects marked tests, makes the plan, and turns bodies into outcomes.

Registered in the main process, or in every xdist worker, by the first marked test.
"""

from __future__ import annotations

import copy
import gc
import re
from dataclasses import replace

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.evaluate import Answer
from pytest_llmeval.evaluate import Evaluator
from pytest_llmeval.evaluate import Recovered
from pytest_llmeval.evaluate import Unanswerable
from pytest_llmeval.exchange import Exchange
from pytest_llmeval.judging import judge_here
from pytest_llmeval.judging import run_folder_here
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.models import load_model
from pytest_llmeval.options import read_settings
from pytest_llmeval.plan import Plan
from pytest_llmeval.plan import Selected
from pytest_llmeval.plan import make_plan
from pytest_llmeval.runs.records import RecordWriter
from pytest_llmeval.runs.records import read_records
from pytest_llmeval.session import ItemOutcome
from pytest_llmeval.suite import Evaluated
from pytest_llmeval.suite import Suite

_RECORD = pytest.StashKey[Record]()


class Answering:
    """Hooks of the answering side."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.suite = Suite(self.settings)
        self._by_test: dict[str, Evaluated] = {}
        self._items: dict[str, Item] = {}
        self._plan = Plan()
        self._evaluator: Evaluator | None = None
        self._writer: RecordWriter | None = None
        self._models: dict[int, Model] = {}
        self._crashes_seen = -1

    # Collection ------------------------------------------------------------------------

    def generate(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        """Parametrize a marked test: one test per item, and per model where there are several."""
        test = metafunc.definition.nodeid
        unknown = marker.kwargs.keys() - {"benchmark", "protocol"}
        if unknown or len(marker.args) > 1:
            raise ConfigError(
                f"{test}: @pytest.mark.llmeval takes a benchmark and protocol=…,"
                f" not {', '.join(sorted(unknown)) or 'more'}"
            )
        if "item" not in metafunc.fixturenames:
            raise ConfigError(f"{test} is marked llmeval but uses neither `answer` nor `item`")
        benchmark = marker.args[0] if marker.args else marker.kwargs.get("benchmark")
        evaluated = self.suite.add(test, benchmark, marker.kwargs.get("protocol"))
        self._by_test[test] = evaluated
        specs = self.settings.models
        if len(specs) > 1:
            names = [load_model(spec).name for spec in specs]
            if len(set(names)) < len(names):
                names = [re.sub(r"[^A-Za-z0-9_.-]+", "-", spec) for spec in specs]
            metafunc.parametrize("model", specs, ids=names, indirect=True, scope="session")
        metafunc.parametrize("item", evaluated.items, ids=[item.id for item in evaluated.items])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # tryfirst: xdist tells the controller in this hook, and the plan must lie ready then.
        if self.config.getoption("collectonly"):
            return
        worker = hasattr(self.config, "workerinput")
        try:
            self._plan = self._make_plan(session.items)
        except ConfigError as error:
            if not worker:
                raise pytest.UsageError(str(error)) from error
            self._plan = Plan(problem=str(error))
        # Tests, items and plan live as long as the session, so the garbage collector need not
        # look through them again and again: a fifth of what 14,000 items cost beside pytest.
        gc.freeze()
        if worker:
            Exchange.of_worker(self.config).leave_plan(self._plan)
        else:
            judge_here(self.config, self._plan, self.settings)

    def _make_plan(self, items: list[pytest.Item]) -> Plan:
        selected = []
        own_model = False
        for node in items:
            # A test's own node id, without parameters, is what `generate` registered.
            test = (
                f"{node.parent.nodeid if node.parent else ''}::{getattr(node, 'originalname', '')}"
            )
            evaluated = self._by_test.get(test)
            callspec = getattr(node, "callspec", None)
            if evaluated is None or callspec is None:
                continue
            item = callspec.params["item"]
            spec = callspec.params.get("model")
            number = self.settings.models.index(spec) if spec is not None else 0
            selected.append(Selected(node.nodeid, number, evaluated, item))
            self._items[node.nodeid] = item
            own_model = own_model or _overrides_model(node)
        if selected and not self.settings.models and not own_model:
            raise ConfigError(
                "no model to evaluate: give --llm-model SPEC (for example --llm-model demo),"
                " or override the `model` fixture in a conftest.py"
            )
        models = self.settings.models or ("model",)
        return make_plan(models, self.suite, selected, own_model)

    # Running ---------------------------------------------------------------------------

    def open_model(self, spec: str | None) -> Model:
        """What the `model` fixture returns."""
        return load_model(spec or self.settings.models[0])

    def answer(self, node: pytest.Item, model: object) -> Answer:
        """What the `answer` fixture returns. Fails the test (an error) without an answer."""
        hopeless = None
        try:
            record = self._evaluate().record(node.nodeid, self._as_model(model))
        except (Unanswerable, ConfigError) as error:
            hopeless = str(error)
        if hopeless is not None:
            node.session.shouldfail = hopeless
            pytest.fail(hopeless, pytrace=False)
        node.stash[_RECORD] = record
        if record.outcome is Outcome.ERROR:
            pytest.fail(f"no answer: {record.error}", pytrace=False)
        return Answer(self._items[node.nodeid], record)

    def _as_model(self, value: object) -> Model:
        if id(value) not in self._models:
            self._models[id(value)] = as_model(value)
        return self._models[id(value)]

    def _evaluate(self) -> Evaluator:
        if self._evaluator is None:
            self._writer = RecordWriter(run_folder_here(self.config).records)
            self._evaluator = Evaluator(
                self._plan, self.suite, self._items, self._writer, self._recover
            )
        return self._evaluator

    def _recover(self) -> Recovered:
        """All records on disk, at the start and whenever a worker has died since."""
        worker = hasattr(self.config, "workerinput")
        crashed = Exchange.of_worker(self.config).crashed() if worker else []
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
            return self._setup_report(item, call) if call.when == "setup" else None
        record = self._settle(item, outcome, call)
        wrong = record.outcome in (Outcome.WRONG, Outcome.UNPARSED)
        if wrong and not self.settings.wrong_fails:
            quiet = copy.copy(call)
            quiet.excinfo = None
            report = pytest.TestReport.from_item_and_call(item, quiet)
            report.outcome = "skipped"
            report.wasxfail = _reason(record)
        else:
            report = pytest.TestReport.from_item_and_call(item, call)
        report.llmeval = ItemOutcome(  # type: ignore[attr-defined]
            outcome=str(record.outcome),
            model=record.model,
            scorer=record.scorer,
            protocol=record.protocol,
            fingerprint=record.model_fingerprint,
            dropped_shots=record.dropped_shots,
            tie=record.tie,
        ).to_wire()
        return report

    def _setup_report(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """A setup that took as long as the item's share of its batch.

        The first test of a batch waits for all of it; booked so, its time would say nothing.
        """
        record = item.stash.get(_RECORD, None)
        if record is None or record.seconds is None:
            return None
        shared = copy.copy(call)
        shared.duration = record.seconds
        return pytest.TestReport.from_item_and_call(item, shared)

    def _settle(self, item: pytest.Item, outcome: Outcome, call: pytest.CallInfo[None]) -> Record:
        """The final record of a test: the body has the last word over the scorer."""
        record = item.stash.get(_RECORD, None)
        if record is None:
            # No answer was asked for: a test of `item` and `model` alone, or a setup that failed.
            record = self._evaluate().blank(item.nodeid, self._model_name(item))
        elif outcome is record.outcome or (
            outcome is Outcome.WRONG and record.outcome is Outcome.UNPARSED
        ):
            return record
        error = None
        if outcome is Outcome.ERROR and call.excinfo is not None:
            error = record.error or call.excinfo.exconly(tryshort=True)
        record = replace(record, outcome=outcome, error=error)
        try:
            self._evaluate().save(record)
        except Unanswerable as failure:
            item.session.shouldfail = str(failure)
        return record

    def _model_name(self, item: pytest.Item) -> str | None:
        value = getattr(item, "funcargs", {}).get("model")
        known = self._models.get(id(value))
        return None if known is None else known.name

    def pytest_sessionfinish(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _outcome(call: pytest.CallInfo[None]) -> Outcome | None:
    """What a phase says about the item; None where it says nothing."""
    failure = call.excinfo
    if call.when == "teardown" or (failure and failure.errisinstance(pytest.skip.Exception)):
        return None
    if call.when == "setup":
        return None if failure is None else Outcome.ERROR
    if failure is None:
        return Outcome.CORRECT
    return Outcome.WRONG if failure.errisinstance(AssertionError) else Outcome.ERROR


def _reason(record: Record) -> str:
    if record.outcome is Outcome.UNPARSED:
        return f"unparsed: no answer could be read, gold {record.gold}"
    if record.answer is None or record.answer == record.gold:
        return f"wrong: the test's own check failed, gold {record.gold}"
    return f"wrong: answered {record.answer}, gold {record.gold}"


def _overrides_model(node: pytest.Item) -> bool:
    info = getattr(node, "_fixtureinfo", None)
    definitions = list(info.name2fixturedefs.get("model", [])) if info is not None else []
    return any(not one.func.__module__.startswith("pytest_llmeval.") for one in definitions[-1:])
