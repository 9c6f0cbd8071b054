"""Collection of marked tests: one test per item, and the plan of the selected ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import FunctionType

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.order_tests import check_order_tests
from pytest_llmeval.evaluation.planner import SelectedTest
from pytest_llmeval.evaluation.planner import make_plan
from pytest_llmeval.evaluation.suite import Suite
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.models import load_model
from pytest_llmeval.plugin.project_fixtures import project_fixture
from pytest_llmeval.plugin.project_fixtures import source_location


class CollectedTests:
    """Marked tests of a session."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.suite = Suite(settings)
        #: Node id → item, of the planned tests.
        self.items: dict[str, Item] = {}
        #: Node id of a test function → why it has no items.
        self.problems: dict[str, str] = {}
        self._config = config
        self._settings = settings

    def parametrize(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        """Parametrize a marked test by item, and by model if there are several.

        If that fails, the test has no items and the reason is in ``problems``; it is reported only
        if the test is selected.
        """
        try:
            self._parametrize(metafunc, marker)
        except ConfigError as error:
            if metafunc.config.option.collectonly:
                raise
            self.problems[metafunc.definition.nodeid] = str(error)

    def _parametrize(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        test = metafunc.definition.nodeid
        unknown = marker.kwargs.keys() - {"benchmark", "protocol"}
        if unknown or len(marker.args) > 1:
            raise ConfigError(
                f"{test}: @pytest.mark.llmeval takes a benchmark and protocol=…,"
                f" not {', '.join(sorted(unknown)) or 'further arguments'}"
            )
        for name in ("item", "answer"):
            override = project_fixture(metafunc.definition, name)
            if override is not None:
                raise ConfigError(
                    f"{test}: the fixture `{name}` of {source_location(override, metafunc.config)} hides the one of"
                    " pytest-llmeval: rename it"
                )
        if "item" not in metafunc.fixturenames:
            raise ConfigError(
                f"{test} is marked llmeval but uses neither `answer` nor `item`: add one of them to"
                " its arguments"
            )
        if sum(mark.name == "llmeval" for mark in metafunc.definition.own_markers) > 1:
            raise ConfigError(
                f"{test} has two llmeval markers: a test evaluates one benchmark, write two tests"
            )
        benchmark = marker.args[0] if marker.args else marker.kwargs.get("benchmark")
        protocol = marker.kwargs.get("protocol")
        evaluation = self.suite.add(test, benchmark, protocol, metafunc.function)
        if evaluation.protocol.answers_per_item > 1 and "answer" not in metafunc.fixturenames:
            raise ConfigError(
                f"{test} does not use `answer`, which a protocol with several samples needs"
            )
        specs = self._settings.models
        if len(specs) > 1:
            names = [load_model(spec, **self._settings.endpoint).name for spec in specs]
            if len(set(names)) < len(names):
                names = [re.sub(r"[^A-Za-z0-9_.-]+", "-", spec) for spec in specs]
            metafunc.parametrize("model", specs, ids=names, indirect=True, scope="session")
        metafunc.parametrize("item", evaluation.items, ids=[item.id for item in evaluation.items])

    def plan(self, tests: Iterable[pytest.Item]) -> Plan:
        """Return the plan of the selected tests.

        Raises ConfigError if they cannot be evaluated in one session.
        """
        specs = self._settings.models
        selected: list[SelectedTest] = []
        seen: set[tuple[int, int, str]] = set()
        fixtures: dict[FunctionType | None, str] = {}
        for node in tests:
            # `parametrize` registered the node id of the function, without parameters.
            test = (
                f"{node.parent.nodeid if node.parent else ''}::{getattr(node, 'originalname', '')}"
            )
            evaluation = self.suite.get(test)
            callspec = getattr(node, "callspec", None)
            if evaluation is None or callspec is None:
                continue
            item, spec = callspec.params["item"], callspec.params.get("model")
            fixtures.setdefault(project_fixture(node, "model"), test)
            if not isinstance(item, Item):
                continue  # a shard without items: pytest collects one test and skips it
            if spec is not None and spec not in specs:
                raise ConfigError(
                    f"{test}: its `model` fixture is parametrized by the project: for several models, repeat"
                    " --llm-model or start several runs"
                )
            number = specs.index(spec) if spec is not None else 0
            if (number, id(evaluation), item.id) in seen:
                raise ConfigError(
                    f"{test} has more than one test for item {item.id!r}: remove its own"
                    " parameters and those of its fixtures"
                )
            seen.add((number, id(evaluation), item.id))
            if evaluation.unavailable_reason is not None and not self._settings.dry_run:
                raise ConfigError(evaluation.unavailable_reason)
            selected.append(SelectedTest(node.nodeid, number, evaluation, item))
            self.items[node.nodeid] = item
        if len(fixtures) > 1:
            raise ConfigError(
                f"{' and '.join(fixtures.values())} have different `model` fixtures: run them in separate sessions"
            )
        self.suite.release()
        own_model = next(iter(fixtures), None)
        if own_model is not None and specs:
            raise ConfigError(
                f"--llm-model {specs[0]} is given, and {source_location(own_model, self._config)} has a `model`"
                " fixture, which replaces it: give one of the two (load_model(SPEC) of"
                " pytest_llmeval.models opens a model inside the fixture)"
            )
        plan = make_plan(
            specs or ("model",),
            self.suite,
            selected,
            own_model is not None,
            self._settings.seed,
            self._settings.shard,
            self._wave(),
        )
        check_order_tests(plan)
        return plan

    def _wave(self) -> int | None:
        """Return the number of items of a wave; None if the run has no waves."""
        if not self._settings.sequential or self._settings.thresholds is None:
            return None
        return load_thresholds(self._settings.thresholds).sequential.wave
