"""Marked tests as pytest collects them: one for every item, and the plan of those that are run."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable
from types import FunctionType

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.models import load_model
from pytest_llmeval.options import Settings
from pytest_llmeval.planning.making import Selected
from pytest_llmeval.planning.making import make_plan
from pytest_llmeval.planning.plan import Plan
from pytest_llmeval.planning.suite import Suite


class Collected:
    """The marked tests of a session.

    ``items``: by node id, of the tests that a plan was made of.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.suite = Suite(settings)
        self.items: dict[str, Item] = {}
        self._config = config
        self._settings = settings

    def parametrize(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        """Parametrize a marked test: one test per item, and per model where there are several."""
        test = metafunc.definition.nodeid
        unknown = marker.kwargs.keys() - {"benchmark", "protocol"}
        if unknown or len(marker.args) > 1:
            raise ConfigError(
                f"{test}: @pytest.mark.llmeval takes a benchmark and protocol=…,"
                f" not {', '.join(sorted(unknown)) or 'more'}"
            )
        for name in ("item", "answer"):
            own = _project_fixture(metafunc.definition, name)
            if own is not None:
                raise ConfigError(
                    f"{test}: the fixture `{name}` of {_place(own, metafunc.config)} hides that of"
                    " pytest-llmeval: rename it"
                )
        if "item" not in metafunc.fixturenames:
            raise ConfigError(f"{test} is marked llmeval but uses neither `answer` nor `item`")
        if sum(mark.name == "llmeval" for mark in metafunc.definition.own_markers) > 1:
            raise ConfigError(f"{test} has two llmeval markers: a test evaluates one benchmark")
        benchmark = marker.args[0] if marker.args else marker.kwargs.get("benchmark")
        protocol = marker.kwargs.get("protocol")
        evaluated = self.suite.add(test, benchmark, protocol, metafunc.function)
        if evaluated.protocol.answers_per_item > 1 and "answer" not in metafunc.fixturenames:
            raise ConfigError(f"{test} does not use `answer`: it cannot have several samples")
        specs = self._settings.models
        if len(specs) > 1:
            names = [load_model(spec, **self._settings.endpoint).name for spec in specs]
            if len(set(names)) < len(names):
                names = [re.sub(r"[^A-Za-z0-9_.-]+", "-", spec) for spec in specs]
            metafunc.parametrize("model", specs, ids=names, indirect=True, scope="session")
        metafunc.parametrize("item", evaluated.items, ids=[item.id for item in evaluated.items])

    def plan(self, tests: Iterable[pytest.Item]) -> Plan:
        """The plan of the collected tests that are left to be run.

        Raises ConfigError where they cannot be evaluated together, or by no model.
        """
        specs = self._settings.models
        selected: list[Selected] = []
        seen: set[tuple[int, int, str]] = set()
        fixtures: dict[FunctionType | None, str] = {}
        for node in tests:
            # A test's own node id, without parameters, is what `parametrize` registered.
            test = (
                f"{node.parent.nodeid if node.parent else ''}::{getattr(node, 'originalname', '')}"
            )
            evaluated = self.suite.get(test)
            callspec = getattr(node, "callspec", None)
            if evaluated is None or callspec is None:
                continue
            item, spec = callspec.params["item"], callspec.params.get("model")
            fixtures.setdefault(_project_fixture(node, "model"), test)
            if not isinstance(item, Item):
                continue  # a shard without items: pytest collects one test, and skips it
            if spec is not None and spec not in specs:
                raise ConfigError(
                    f"{test}: its `model` is parametrized by the project; several models are"
                    " several --llm-model, or several runs"
                )
            number = specs.index(spec) if spec is not None else 0
            if (number, id(evaluated), item.id) in seen:
                raise ConfigError(
                    f"{test} has several tests for item {item.id!r}: it may have no parameters"
                    " beside those that the marker gives it"
                )
            seen.add((number, id(evaluated), item.id))
            if evaluated.lacking is not None and not self._settings.dry_run:
                raise ConfigError(evaluated.lacking)
            selected.append(Selected(node.nodeid, number, evaluated, item))
            self.items[node.nodeid] = item
        if len(fixtures) > 1:
            raise ConfigError(
                f"{' and '.join(fixtures.values())} have different `model` fixtures: run them apart"
            )
        own_model = next(iter(fixtures), None)
        if own_model is not None and specs:
            raise ConfigError(
                f"--llm-model {specs[0]} is given, and {_place(own_model, self._config)} has a `model`"
                " fixture, which replaces it: give one of the two (load_model(SPEC) of"
                " pytest_llmeval.models opens a model inside the fixture)"
            )
        if selected and not specs and own_model is None and not self._settings.dry_run:
            raise ConfigError(
                "no model to evaluate: give --llm-model SPEC (for example --llm-model demo),"
                " or override the `model` fixture in a conftest.py"
            )
        return make_plan(
            specs or ("model",),
            self.suite,
            selected,
            own_model is not None,
            self._settings.seed,
            self._settings.shard,
        )


def _project_fixture(node: pytest.Item, name: str) -> FunctionType | None:
    """The function of a project's own fixture that a test uses; None for the plugin's or none."""
    info = getattr(node, "_fixtureinfo", None)
    definitions = list(info.name2fixturedefs.get(name, [])) if info is not None else []
    function = inspect.unwrap(definitions[-1].func) if definitions else None
    own = function is not None and not function.__module__.startswith("pytest_llmeval.")
    return function if own else None


def _place(function: FunctionType, config: pytest.Config) -> str:
    """File and line of a function, the file as it is typed where pytest was started."""
    code = function.__code__
    file = os.path.relpath(code.co_filename, config.invocation_params.dir)
    return f"{file}:{code.co_firstlineno}"
