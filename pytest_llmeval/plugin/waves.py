"""Waves of a sequential run: decisions at their ends, and reports of the items that no gate needs."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.plugin.estimates import RequestEstimate
from pytest_llmeval.plugin.outcomes import NOT_NEEDED
from pytest_llmeval.plugin.outcomes import attach_outcome
from pytest_llmeval.plugin.worker_channel import WorkerChannel
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import measure
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.folder import RunFolder

if TYPE_CHECKING:
    from pytest_llmeval.runs.sequential import SequentialProgress

Skips = dict[str, str]
"""``model/result/subject`` → why its items are not needed any more."""


def _check_selection(plan: Plan, settings: Settings, thresholds: Thresholds | None) -> None:
    """Raise ConfigError for a sequential run whose items are not a random order of all items."""
    if settings.limit is not None or settings.shard is not None:
        option = "--llm-limit" if settings.limit is not None else "--llm-shard"
        raise ConfigError(
            f"--llm-sequential and {option} cannot be combined: the items must be in random order"
            " over the whole benchmark"
        )
    if thresholds is None:
        raise ConfigError(
            "--llm-sequential stops when the gates are decided, but there is no thresholds.toml"
        )
    tables = [set(thresholds.for_model(model)) for model in plan.models]
    gated = set().union(*tables)
    if not any(result.benchmark in gated for result in plan.results):
        raise ConfigError(
            f"--llm-sequential: {thresholds.file} has no gates for the benchmarks of this run"
        )
    for number, result in enumerate(plan.results):
        if result.responses_of is None and result.benchmark in gated:
            items = sum(item.result == number for item in plan.items)
            expected = result.requested * len(plan.models)
            if items < expected:
                raise ConfigError(
                    f"--llm-sequential: {items:,} of {expected:,} items of {result.benchmark} are"
                    " selected: the gates are about all of them (remove -k, -m or the test ids)"
                )


def check_sequential(
    plan: Plan,
    settings: Settings,
    thresholds: Thresholds | None,
    baseline: Run | None,
    variants: Mapping[tuple[int, int], ProtocolVariant],
) -> tuple[dict[str, Any], list[str]]:
    """Return the entry ``sequential`` of ``run.json``, and notes for the start of the run.

    ``variants``: by index of model and planned result, the protocol that the model supports. Raises
    ConfigError for a run that cannot stop early.
    """
    _check_selection(plan, settings, thresholds)
    assert thresholds is not None
    # Imported here because it imports numpy, which only sequential runs need.
    from pytest_llmeval.runs.sequential import earlier_runs_note
    from pytest_llmeval.runs.sequential import manifest_entry
    from pytest_llmeval.runs.sequential import run_families
    from pytest_llmeval.runs.sequential import start_notes

    planned = _planned_measurements(plan, variants)
    families = run_families(planned, thresholds, baseline, thresholds.sequential.alpha)
    notes = start_notes(families.values(), thresholds.sequential)
    entry = manifest_entry(thresholds, baseline)
    earlier = None if settings.resume else earlier_runs_note(settings.runs, plan, entry)
    return entry, notes + ([earlier] if earlier else [])


def _planned_measurements(
    plan: Plan, variants: Mapping[tuple[int, int], ProtocolVariant]
) -> dict[tuple[int, int], Measurement]:
    """Return the measurements of a run without answers, as ``Run.by_plan``."""
    return {
        (model, number): measure(
            result, variants.get((model, number), result.variants[0]), name, {}, None
        )
        for model, name in enumerate(plan.models)
        for number, result in enumerate(plan.results)
    }


def expected_share_lines(
    plan: Plan, settings: Settings, estimates: Sequence[RequestEstimate]
) -> list[str]:
    """Return a line for every estimate of a dry run: the expected share of its items and tokens.

    Raises ConfigError for a run that cannot stop early.
    """
    thresholds = None if settings.thresholds is None else load_thresholds(settings.thresholds)
    _check_selection(plan, settings, thresholds)
    assert thresholds is not None
    # Imported here because it imports numpy, which only sequential runs need.
    from pytest_llmeval.runs.sequential import MARGINS
    from pytest_llmeval.runs.sequential import expected_shares
    from pytest_llmeval.runs.sequential import run_families

    table, lines = thresholds.sequential, []
    families = run_families(_planned_measurements(plan, {}), thresholds, None, table.alpha)
    points = ", ".join(f"{margin * 100:g}" for margin in MARGINS)
    for estimate in estimates:
        shares = expected_shares(families.values(), estimate.benchmark, table.wave)
        if shares is None:
            continue
        parts = []
        for share in shares:
            tokens = (estimate.prompt_tokens + estimate.answer_tokens) * share
            price = None if estimate.cost is None else estimate.cost * share
            amount = "" if price is None else f", {settings.prices.format_amount(price)}"
            parts.append(f"{share:.0%} (~{tokens:,.0f} tokens{amount})")
        lines.append(
            f"{estimate.benchmark}: at {points} points above its accuracy gate a sequential run needs"
            f" about {', '.join(parts)}; other gates may need more"
        )
    return lines


class WaveDecisions:
    """Decisions of the process that reports, from the records on disk."""

    def __init__(
        self,
        config: pytest.Config,
        plan: Plan,
        folder: RunFolder,
        thresholds: Thresholds,
        baseline: Run | None,
    ) -> None:
        self._config = config
        self.plan = plan
        #: Channel to xdist's workers, if there are any.
        self.channel: WorkerChannel | None = None
        #: Why the records could not be read; the run then has no verdict.
        self.problem: str | None = None
        self._folder = folder
        self._thresholds = thresholds
        self._baseline = baseline
        #: Number of complete waves.
        self.ended = 0
        self.skips: Skips = {}
        #: Wave → its subjects, as keys of skips.
        self._subjects: dict[int, set[str]] = {}
        for item in plan.items:
            self._subjects.setdefault(plan.wave_of(item), set()).add(skip_key(item))

    def end_waves(self, number: int) -> Skips:
        """Decide the gates after ``number`` complete waves; return the items that are not needed.

        A decision is never taken back: the items that it skipped are not available later.
        """
        try:
            self._decide(number)
        except RunError as error:
            # Nothing can be decided from damaged records: the run goes on, and fails at its end.
            self.problem = str(error)
        if self.channel is not None:
            self.channel.publish_skips(self.skips)
        return self.skips

    def needed(self, number: int, nodeids: list[str]) -> set[str]:
        """Return the tests that are needed after a number of complete waves."""
        skips, planned = self.end_waves(number), self.plan.by_nodeid
        return {
            nodeid
            for nodeid in nodeids
            if nodeid not in planned or skip_key(planned[nodeid]) not in skips
        }

    def skip(self, nodeids: list[str]) -> None:
        """Report tests that no gate needs, which no worker has."""
        for nodeid in nodeids:
            reason = self.skips[skip_key(self.plan.by_nodeid[nodeid])]
            self._config.hook.pytest_runtest_logreport(report=skip_report(nodeid, reason))

    def _decide(self, number: int) -> None:
        new = range(self.ended, number)
        self.ended = max(self.ended, number)
        if all(self._subjects.get(wave, set()) <= self.skips.keys() for wave in new):
            return  # no further answers
        # Imported here because it imports numpy, which only sequential runs need.
        from pytest_llmeval.runs.sequential import run_progress

        run = load_run(self._folder.path)
        progress = run_progress(run, self._thresholds, self._baseline, number)
        for item in self.plan.items:
            key = skip_key(item)
            if key not in self.skips and not progress.needs(item.model, item.result, item.subject):
                self.skips[key] = self._reason(progress, item)

    def _reason(self, progress: SequentialProgress, item: PlannedItem) -> str:
        sizes = [
            (len(position.answered), position.gate.rule.population)
            for position in progress.courses[item.model, item.result].positions
            if position.gate.subject in (None, item.subject)
        ]
        if not sizes:
            return "no gate is about its subject"
        answered, population = max(sizes)
        return f"every gate was decided after {answered:,} of {population:,} items"


def order_tests(plan: Plan, tests: list[pytest.Item]) -> None:
    """Put the planned tests in the order of the plan, wave by wave, at the places that they have."""
    places = [place for place, test in enumerate(tests) if test.nodeid in plan.by_nodeid]
    by_nodeid = {tests[place].nodeid: tests[place] for place in places}
    for place, planned in zip(places, plan.items, strict=True):
        tests[place] = by_nodeid[planned.nodeid]


def skip_key(item: PlannedItem) -> str:
    """Return the key of an item in ``Skips``: gates contain a subject as a whole."""
    return f"{item.model}/{item.result}/{item.subject}"


def skip_report(
    nodeid: str, reason: str, location: tuple[str, int | None, str] | None = None
) -> pytest.TestReport:
    """Return the report of a test that is skipped because no gate needs its item.

    ``location``: None in a process that did not collect the test.
    """
    file, _, name = nodeid.partition("::")
    place = location or (file, None, name)
    report = pytest.TestReport(
        nodeid=nodeid,
        location=place,
        keywords={},
        outcome="skipped",
        longrepr=(place[0], place[1] or 0, f"Skipped: {reason}"),
        when="setup",
    )
    attach_outcome(report, NOT_NEEDED, [])
    return report


class WaveRunner:
    """Plugin of a process that runs tests: it skips those that no gate needs.

    ``read_skips``: number of complete waves → the items that are not needed after them.
    """

    def __init__(self, plan: Plan, read_skips: Callable[[int], Skips]) -> None:
        self._plan = plan
        self._read_skips = read_skips
        self._skips: Skips = {}
        #: Wave of the current test, from 0.
        self.wave = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report an item as skipped, without its fixtures, if no gate needs it."""
        planned = self._plan.by_nodeid.get(item.nodeid)
        if planned is None:
            return None
        wave = self._plan.wave_of(planned)
        if wave > self.wave:
            self.wave = wave
            self._skips = self._read_skips(wave)
        reason = self._skips.get(skip_key(planned))
        if reason is None:
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        report = skip_report(item.nodeid, reason, item.location)
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
