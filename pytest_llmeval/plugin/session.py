"""The judging side of a session: one run folder, all outcomes, the verdicts, the exit code.

Lives in the process that reports: the main one, or the xdist controller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.models import load_model
from pytest_llmeval.plugin.outcomes import UNANSWERED
from pytest_llmeval.plugin.outcomes import Outcomes
from pytest_llmeval.reports.formatting import usage_lines
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import write_report
from pytest_llmeval.reports.wording import run_notes
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.runs.baseline import load_baseline
from pytest_llmeval.runs.comparison import check_comparable
from pytest_llmeval.runs.judging import FIRST
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import check_thresholds
from pytest_llmeval.runs.judging import chosen_baseline
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import count_answers
from pytest_llmeval.runs.measurement import measure
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import create_run
from pytest_llmeval.storage.folder import describe
from pytest_llmeval.storage.folder import find_resumable
from pytest_llmeval.storage.folder import now
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.folder import take_up
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.usage_log import Rows
from pytest_llmeval.storage.usage_log import read_usage
from pytest_llmeval.storage.usage_log import with_prices
from pytest_llmeval.storage.usage_log import with_usage


class RunSession:
    """Everything known about the run while it goes on."""

    def __init__(self, plan: Plan, settings: Settings, command: Iterable[str]) -> None:
        """Check the plan and open the run folder.

        Raises ConfigError, before any weights are loaded, for what is wrong with models,
        thresholds or the folder to resume.
        """
        self.plan = plan
        self.settings = settings
        self.notes: list[str] = []
        self.outcomes = Outcomes()
        #: The run's measurements as they are read back at the end (``Run.by_plan``), its verdicts.
        self.measurements: Mapping[tuple[int, int], Measurement] = {}
        self.judged: JudgedRun | None = None
        #: What is told where there are no gates.
        self.ungated = "nothing was gated: no thresholds.toml"
        #: By index of model and planned result: the way in which the model is asked.
        self._ways: dict[tuple[int, int], ProtocolVariant] = {}
        #: Spec of a model → the name it is printed with.
        self._model_names: dict[str, str] = {}
        #: Folders with earlier runs, whose names a thresholds file may know.
        self._earlier = (settings.runs, settings.baselines)
        #: Model → how an endpoint is asked for choices, for text.
        self._asked_by: dict[str, dict[str, str]] = {}
        #: Model → the date that its chat template writes, where it writes one.
        self._template_dates: dict[str, str] = {}
        #: True if a model should have more requests at a time than those of one chunk.
        self.prefetches = False
        self.usage: Rows = {}
        self._began = time.monotonic()
        self._is_resumed = False
        self._check_models()
        self.notes += remarks(plan, settings)
        self.thresholds = self._read_thresholds()
        self._baseline_name = chosen_baseline(settings.baseline, self.thresholds)
        self.baseline = self._read_baseline()
        if self.settings.shard is not None:
            part, parts = self.settings.shard
            self.notes.append(
                f"shard {part} of {parts} is not gated: join the shards with `llmeval merge`, then"
                " `llmeval gate`"
            )
        self.folder = self._open_folder(list(command))
        self._writer = RecordWriter(self.folder.records)

    def _check_models(self) -> None:
        """Open every model and see that it can answer what is planned, under distinct names."""
        for spec in () if self.plan.own_model else self.settings.models:
            model = load_model(spec, **self.settings.endpoint)
            self._model_names[spec] = model.name
            self._asked_by[spec] = dict(model.request_modes.items())
            if model.template_date:
                self._template_dates[spec] = model.template_date
            self.prefetches |= model.prefetch > 0
            names: dict[tuple[str, str], str] = {}
            for number, result in enumerate(self.plan.results):
                if result.responses_of is not None:
                    continue
                planned = result.ways[0].name
                way = next((way for way in result.ways if way.ask in model.asks), None)
                if way is None:
                    raise ConfigError(
                        f"--llm-model {spec} cannot generate text, which protocol"
                        f" {planned!r} of {result.benchmark} needs"
                    )
                self._ways[self.settings.models.index(spec), number] = way
                other = names.setdefault((result.benchmark, way.scorer), planned)
                if other != planned:
                    raise ConfigError(
                        f"--llm-model {spec} gives only text, so protocols {other!r} and"
                        f" {planned!r} would both give the result"
                        f" ({result.benchmark}, {way.scorer}): run one of them"
                    )

    def _read_thresholds(self) -> Thresholds | None:
        if self.settings.thresholds is None:
            return None
        thresholds = load_thresholds(self.settings.thresholds)
        tests = {
            item.nodeid.partition("[")[0].rpartition("::")[2]: result.benchmark
            for item in self.plan.items
            for result in [self.plan.results[item.result]]
        }
        names = None if self.plan.own_model else self._model_names
        check_thresholds(thresholds, self._collected(), self._earlier, names, tests)
        # The noise is that of the items drawn.
        self.notes += noise_warnings(thresholds, self._collected(drawn=True))
        return thresholds

    def _collected(self, drawn: bool = False) -> dict[str, CollectedBenchmark]:
        """What the gates need to know of the benchmarks: their own sizes, or those of a draw."""
        return collected_benchmarks(
            (
                result.benchmark,
                result.scorer,
                (result.drawn if drawn else None) or result.subjects,
                result.chance,
                self._samples(number),
            )
            for number, result in enumerate(self.plan.results)
        )

    def _samples(self, result: int) -> int:
        """The most answers per item that a model of the run may be asked for."""
        planned = self.plan.results[result]
        known = [way for (_, number), way in self._ways.items() if number == result]
        return max(way.samples for way in known or planned.ways)

    def _read_baseline(self) -> Run | None:
        """The run to compare with; one that cannot be compared is refused before anything runs."""
        if isinstance(self._baseline_name, NotCompared):
            return None
        try:
            baseline = load_baseline(self._baseline_name, self.settings.baselines)
        except ConfigError as error:
            if self.settings.baseline is not None or self.thresholds is None:
                raise
            raise ConfigError(
                f"{self.thresholds.file}: baseline = {self._baseline_name!r}: {error}; for the"
                " first run, give --llm-baseline none"
            ) from None
        # All models are asked alike, or the comparison at the end refuses.
        by = next(iter(self._asked_by.values()), {})
        days = set(self._template_dates.values())
        day = days.pop() if len(days) == 1 else ""
        planned = [
            replace(
                measure(result, way, "", {}, None),
                asked=by.get(way.ask, ""),
                template_date=day,
            )
            for result in self.plan.results
            for way in result.ways
        ]
        models = None if self.plan.own_model else self.plan.models
        check_comparable(baseline, planned, models, self.settings.allow_mismatch)
        return baseline

    def _open_folder(self, command: list[str]) -> RunFolder:
        root = self.settings.runs
        if self.settings.resume:
            found = find_resumable(root, self.plan)
            if isinstance(found, RunFolder):
                take_up(found)
                found.write("run.json", self._with_settings(found.read("run.json")))
                self._is_resumed = True
                return found
            if found is not None:
                self.notes.append(f"nothing to resume: {found}; a new run was started")
        manifest = describe(
            self.plan,
            command,
            limit=self.settings.limit,
            asked=self._asked_by,
            template_dates=self._template_dates,
        )
        folder = create_run(root, self.plan, self._with_settings(manifest))
        folder.claim()
        return folder

    def _with_settings(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """The manifest with prices and weights of a hybrid score, now: a killed run has no end."""
        priced = with_prices(manifest, self.plan.models, self.settings.prices)
        return {**priced, "hybrid": dict(self.settings.hybrid)}

    # Outcomes --------------------------------------------------------------------------

    def receive_failure(self, nodeid: str, reason: str) -> None:
        """Note a planned test whose report failed without an outcome (a dead worker, say).

        Raises RunError where its records cannot be written.
        """
        self.outcomes.lose(nodeid)
        self._writer.append(*self._lost(nodeid, reason))

    def _lost(self, nodeid: str, reason: str) -> Iterator[Record]:
        """The records of an item's errors: as many as it may turn out to have been asked for."""
        planned = self.plan.by_nodeid[nodeid]
        result = self.plan.results[planned.result]
        way = self._ways.get((planned.model, planned.result), result.ways[0])
        error = Record(
            model=self.plan.models[planned.model],
            benchmark=result.benchmark,
            scorer=way.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold="",
            error=reason,
            protocol=way.fingerprint,
            data=result.data_hash,
        )
        # A model that gives only text has one way to score it.
        scorers = self.plan.other_scorers(planned.result) if way == result.ways[0] else []
        others = [one.ways[0] for one in scorers]
        for sample in range(max(way.samples for way in result.ways)):
            lost = replace(error, sample=sample)
            yield lost
            for other in others:
                yield replace(
                    lost,
                    scorer=other.scorer,
                    protocol=other.fingerprint,
                    response_of=way.scorer,
                )

    # The end ---------------------------------------------------------------------------

    def finish(self, cut_short: bool, failed: Iterable[str] = ()) -> None:
        """Read the run back, judge it, and write what was found into its folder.

        ``failed``: the ids of the items' tests that failed.
        """
        self._leave_out_unreported()
        self._writer.close()
        self.usage = read_usage(self.folder.usage)
        run = load_run(self.folder.path)
        self.measurements = run.by_plan
        failed_tests = sum(not self._is_error(nodeid, run) for nodeid in {*failed})
        self.judged = self._judge(run, failed_tests)
        manifest = {
            **run.manifest,
            "failed_tests": failed_tests,
            "status": "interrupted" if cut_short else "finished",
        }
        self._note(run, manifest)
        self.judged.write(self.folder)
        self._write_manifest(manifest, run.measurements())
        self.folder.release()

    def _is_error(self, nodeid: str, run: Run) -> bool:
        """Whether the item of a test is an error in the run, by which it is judged."""
        planned = self.plan.by_nodeid[nodeid]
        measurement = run.by_plan.get((planned.model, planned.result))
        item = None if measurement is None else measurement.items.get(planned.item)
        return item is not None and Outcome.ERROR in item.outcomes

    def _judge(self, run: Run, failed_tests: int) -> JudgedRun:
        about: dict[str, Any] = {
            "failed_tests": failed_tests,
            "earlier": self._earlier,
            "allow_undecided": self.settings.allow_undecided,
            "gated": self.settings.shard is None,
        }
        if self.baseline is None:
            assert isinstance(self._baseline_name, NotCompared)
            return judge_run(run, self.thresholds, self._baseline_name, **about)
        try:
            allowed = self.settings.allow_mismatch
            return judge_run(run, self.thresholds, self.baseline, allow_mismatch=allowed, **about)
        except ConfigError as error:
            self.notes.append(str(error))
            not_compared = NotCompared("undecided", f"not comparable: {error}")
            return judge_run(run, self.thresholds, not_compared, **about)

    def _note(self, run: Run, manifest: Mapping[str, Any]) -> None:
        self.notes += usage_lines(self.usage, self.settings.prices, resumed=self._is_resumed)
        self.notes += self.outcomes.notes()
        self.notes += run_notes(run)
        if self.settings.hybrid and self.judged is not None and not self.judged.hybrids:
            self.notes.append(f"no benchmark ran under {' and '.join(self.settings.hybrid)}")
        if self.thresholds is None:
            self.notes.append(self.ungated)
        if unfinished := unfinished_words(manifest):
            self.notes.append(unfinished)

    def _write_manifest(
        self, manifest: dict[str, Any], measurements: Sequence[Measurement]
    ) -> None:
        manifest["finished"] = now()
        manifest["model_fingerprints"] = {
            one.result.model: one.model_fingerprint for one in measurements if one.model_fingerprint
        }
        manifest["answers"] = count_answers(measurements)
        # A resumed run adds to what the earlier sessions used.
        manifest["seconds"] = manifest.get("seconds", 0.0) + time.monotonic() - self._began
        manifest = with_usage(manifest, self.usage, self.settings.prices)
        if self._baseline_name is not NO_BASELINE:
            first = isinstance(self._baseline_name, NotCompared)
            manifest["baseline"] = FIRST if first else self._baseline_name
        self.folder.write("run.json", manifest)

    def write_reports(self) -> None:
        """Write the reports that ``--llm-report`` asks for, from what is on disk."""
        for name in self.settings.reports:
            file = write_report(name, ReportInput(self.folder.path, self.baseline))
            self.notes.append(f"report: {run_name(file)}")

    @property
    def is_empty(self) -> bool:
        """Whether a new run holds nothing, because its model could not be loaded."""
        if self._is_resumed or self.usage or not self.plan.items:
            return False
        # An answer may be there that no test has seen: its scorer lacked a model.
        return self.outcomes.count(UNANSWERED) == len(self.outcomes.by_nodeid) and not any(
            record.text is not None or record.logprobs
            for record in read_records(self.folder.records)
        )

    @property
    def thresholds_name(self) -> str:
        """The name of the gates' file, which the gates' test ids begin with."""
        return self.settings.thresholds.name if self.settings.thresholds else "thresholds.toml"

    @property
    def gated(self) -> bool:
        """Whether gates are judged: not of a shard, which has a part of what they are about."""
        return self.thresholds is not None and self.settings.shard is None

    @property
    def verdict(self) -> str:
        """``pass``, ``fail``, or ``not gated``: of the build, as far as it is ours."""
        return "not gated" if self.judged is None else self.judged.verdict

    def _leave_out_unreported(self) -> None:
        """Mark answers on disk whose test never came to a verdict, so that both tell the same."""
        silent: set[tuple[str, str, str, str]] = set()
        fingerprints = [self.plan.fingerprints(n) for n in range(len(self.plan.results))]
        for planned in self.plan.items:
            if planned.nodeid not in self.outcomes.by_nodeid:
                benchmark = self.plan.results[planned.result].benchmark
                model = "" if self.plan.own_model else self.plan.models[planned.model]
                for fingerprint in fingerprints[planned.result]:
                    silent.add((model, benchmark, fingerprint, planned.item))
        if not silent:
            return
        for record in latest_records(self.folder.records):
            model = "" if self.plan.own_model else record.model
            about = (model, record.benchmark, record.protocol, record.item)
            if about in silent and not record.left_out:
                self._writer.append(replace(record, left_out=True))


def remarks(plan: Plan, settings: Settings) -> Iterator[str]:
    """What is odd about a plan: doubtful data, samples all alike, options without effect."""
    yield from dict.fromkeys(warning for one in plan.results for warning in one.warnings)
    greedy = {
        f"protocol {way.name!r} of {result.benchmark} is greedy (temperature 0): its samples differ"
        " only where the model is not deterministic"
        for result in plan.results
        for way in result.ways
        if way.samples > 1 and way.protocol["decoding"]["temperature"] == 0
    }
    yield from sorted(greedy)
    if settings.debias and not any(result.debias for result in plan.results):
        yield "--llm-debias: no benchmark of this run is answered by letter"
    if settings.permutations and not any(result.arms for result in plan.results):
        yield "--llm-permutations: no benchmark of this run has options"
