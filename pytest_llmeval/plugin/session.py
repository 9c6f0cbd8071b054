"""State of one session in the process that reports: run folder, outcomes, notes, judged run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.plugin.outcomes import UNANSWERED
from pytest_llmeval.plugin.outcomes import Outcomes
from pytest_llmeval.plugin.planned_models import check_models
from pytest_llmeval.plugin.planned_models import plan_notes
from pytest_llmeval.plugin.waves import WaveDecisions
from pytest_llmeval.plugin.waves import check_sequential
from pytest_llmeval.reports.formatting import usage_lines
from pytest_llmeval.reports.overlap import clean_lines
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import write_report
from pytest_llmeval.reports.wording import run_notes
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.runs.baseline import load_baseline
from pytest_llmeval.runs.comparison import check_comparable
from pytest_llmeval.runs.judging import FIRST_RUN_OPTION
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import baseline_choice
from pytest_llmeval.runs.judging import check_thresholds
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import count_answers
from pytest_llmeval.runs.measurement import measure
from pytest_llmeval.runs.overlap import load_overlap
from pytest_llmeval.runs.references import load_references
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import create_run
from pytest_llmeval.storage.folder import new_manifest
from pytest_llmeval.storage.folder import now
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.resuming import ResumableRun
from pytest_llmeval.storage.resuming import find_resumable
from pytest_llmeval.storage.resuming import reopen
from pytest_llmeval.storage.usage_log import Rows
from pytest_llmeval.storage.usage_log import read_usage
from pytest_llmeval.storage.usage_log import with_prices
from pytest_llmeval.storage.usage_log import with_usage


class RunSession:
    """The run of a session, from the check of its plan to its reports."""

    def __init__(self, plan: Plan, settings: Settings, command: Iterable[str]) -> None:
        """Check the plan and open the run folder.

        Raises ConfigError, before any weights are loaded, for invalid models, thresholds, baselines
        or a run that cannot be resumed.
        """
        self.plan = plan
        self.settings = settings
        self.notes: list[str] = []
        self.outcomes = Outcomes()
        #: Measurements of the finished run (``Run.by_plan``).
        self.measurements: Mapping[tuple[int, int], Measurement] = {}
        self.judged: JudgedRun | None = None
        #: Note for a session without gates.
        self.no_gates_note = "nothing was gated: no thresholds.toml"
        #: Folders with earlier runs, for model and benchmark names that thresholds may have.
        self._earlier_folders = (settings.runs, settings.baselines)
        self.usage: Rows = {}
        self._start_time = time.monotonic()
        self._is_resumed = False
        self.models = check_models(plan, settings)
        self.notes += plan_notes(plan, settings)
        if settings.replicas is not None and not self.models.replicable:
            self.notes.append("--llm-ray: no replicas, because no model of this run has weights")
        self.thresholds = self._read_thresholds()
        self._references = self._load_references()
        self._baseline_name = baseline_choice(settings.baseline, self.thresholds)
        self.baseline = self._read_baseline()
        self._overlap = self._read_overlap()
        #: Entry ``sequential`` of ``run.json``; None if the run has no waves.
        self._sequential: dict[str, Any] | None = None
        if settings.sequential:
            self._sequential, notes = check_sequential(
                plan, settings, self.thresholds, self.baseline, self.models.variants
            )
            self.notes += notes
        if self.settings.shard is not None:
            part, parts = self.settings.shard
            self.notes.append(
                f"shard {part} of {parts} is not gated: join the shards with `llmeval merge`, then"
                " `llmeval gate`"
            )
        self.folder = self._open_folder(list(command))
        self._writer = RecordWriter(self.folder.records)

    def _read_thresholds(self) -> Thresholds | None:
        if self.settings.thresholds is None:
            return None
        thresholds = load_thresholds(self.settings.thresholds)
        tests = {
            item.nodeid.partition("[")[0].rpartition("::")[2]: result.benchmark
            for item in self.plan.items
            for result in [self.plan.results[item.result]]
        }
        names = None if self.plan.own_model else self.models.names
        check_thresholds(thresholds, self._gate_inputs(), self._earlier_folders, names, tests)
        # The noise is that of the sampled items.
        self.notes += noise_warnings(thresholds, self._gate_inputs(sampled=True))
        return thresholds

    def _load_references(self) -> dict[str, Reference]:
        """Return the reference runs of gates of contamination. Raises ConfigError."""
        if self.thresholds is None or not self.gated:
            return {}
        return load_references(self.thresholds, self.plan.results, self.settings.baselines)

    def _gate_inputs(self, sampled: bool = False) -> dict[str, CollectedBenchmark]:
        """Return the benchmarks as gates need them, with full sizes or those of the sample."""
        return collected_benchmarks(
            (
                result.benchmark,
                result.scorer,
                (result.drawn if sampled else None) or result.subjects,
                result.chance,
                self._samples(number),
            )
            for number, result in enumerate(self.plan.results)
        )

    def _samples(self, result: int) -> int:
        """Return the maximum number of answers per item, over the models of the run."""
        planned = self.plan.results[result]
        variants = [
            variant for (_, number), variant in self.models.variants.items() if number == result
        ]
        return max(variant.samples for variant in variants or planned.variants)

    def _read_baseline(self) -> Run | None:
        """Return the run to compare with; raise ConfigError if it is not comparable."""
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
        # If models have different request modes, the comparison at the end raises an error.
        modes = next(iter(self.models.request_modes.values()), {})
        dates = set(self.models.template_dates.values())
        template_date = dates.pop() if len(dates) == 1 else ""
        planned = [
            replace(
                measure(result, variant, "", {}, None),
                request_mode=modes.get(variant.ask, ""),
                template_date=template_date,
            )
            for result in self.plan.results
            for variant in result.variants
        ]
        models = None if self.plan.own_model else self.plan.models
        check_comparable(baseline, planned, models, self.settings.allow_mismatch)
        return baseline

    def _read_overlap(self) -> OverlapReport | None:
        """Return the overlap with a corpus; raise ConfigError if it is of other data."""
        if self.settings.overlap is None:
            return None
        data = {result.benchmark: result.data_hash for result in self.plan.results}
        return load_overlap(self.settings.overlap, data)

    def wave_decisions(self, config: pytest.Config) -> WaveDecisions | None:
        """Return the decisions at the ends of waves; None if the run has no waves."""
        if self._sequential is None or self.thresholds is None:
            return None
        return WaveDecisions(config, self.plan, self.folder, self.thresholds, self.baseline)

    def _open_folder(self, command: list[str]) -> RunFolder:
        root = self.settings.runs
        if self.settings.resume:
            resumable = find_resumable(root, self.plan)
            if isinstance(resumable, ResumableRun):
                folder = resumable.folder
                difference = self._other_settings(folder.read("run.json"))
                if difference is None:
                    self._reopen(resumable)
                    return folder
                resumable = f"{folder.path.name} has other {difference}"
            if resumable is not None:
                self.notes.append(f"nothing to resume: {resumable}; a new run was started")
        manifest = new_manifest(
            self.plan,
            command,
            limit=self.settings.limit,
            asked=self.models.request_modes,
            additions=self.models.additions,
            template_dates=self.models.template_dates,
        )
        if self._sequential is not None:
            manifest["sequential"] = self._sequential
        folder = create_run(root, self.plan, self._with_settings(manifest))
        folder.claim()
        if self._sequential is not None:
            from pytest_llmeval.runs.sequential import order_document

            folder.write("order.json", order_document(self.plan))
        return folder

    def _other_settings(self, manifest: Mapping[str, Any]) -> str | None:
        """Return what a run has differently that is not in its plan; None if nothing."""
        if self._sequential not in (None, manifest.get("sequential")):
            return "gates, alpha or waves"
        if manifest.get("additions", {}) != self.models.additions:
            return "body fields or headers"
        return None

    def _reopen(self, run: ResumableRun) -> None:
        """Continue a stored run."""
        reopen(run, self.plan)
        run.folder.write("run.json", self._with_settings(run.folder.read("run.json")))
        self._is_resumed = True
        if run.earlier_samples is not None:
            number = run.earlier_samples
            self.notes.append(
                f"resumed a run with {number} samples per item: only further ones ran"
            )

    def _with_settings(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the manifest with prices and hybrid weights, which a killed run has as well."""
        priced = with_prices(manifest, self.plan.models, self.settings.prices)
        return {**priced, "hybrid": dict(self.settings.hybrid)}

    def record_replicas(self, descriptions: Mapping[str, Mapping[str, Any]]) -> None:
        """Add to the manifest where models run as replicas. Raises RunError."""
        if descriptions:
            manifest = self.folder.read("run.json")
            replicas = {**manifest.get("replicas", {}), **descriptions}
            self.folder.write("run.json", {**manifest, "replicas": replicas})

    # Outcomes --------------------------------------------------------------------------

    def record_failure(self, nodeid: str, reason: str) -> None:
        """Record a planned test that failed without an outcome, for example in a crashed worker.

        Raises RunError if its records cannot be written.
        """
        self.outcomes.add_error(nodeid)
        self._writer.append(*self._error_records(nodeid, reason))

    def _error_records(self, nodeid: str, reason: str) -> Iterator[Record]:
        """Yield the error records of an item, for the maximum number of samples."""
        planned = self.plan.by_nodeid[nodeid]
        result = self.plan.results[planned.result]
        variant = self.models.variants.get((planned.model, planned.result), result.variants[0])
        error = Record(
            model=self.plan.models[planned.model],
            benchmark=result.benchmark,
            scorer=variant.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold="",
            error=reason,
            protocol=variant.fingerprint,
            data=result.data_hash,
        )
        # A protocol that is replaced by text generation has no other scorers.
        is_planned = variant == result.variants[0]
        scorers = self.plan.other_scorers(planned.result) if is_planned else []
        others = [scorer.variants[0] for scorer in scorers]
        for sample in range(max(possible.samples for possible in result.variants)):
            record = replace(error, sample=sample)
            yield record
            for other in others:
                yield replace(
                    record,
                    scorer=other.scorer,
                    protocol=other.fingerprint,
                    response_of=variant.scorer,
                )

    # The end ---------------------------------------------------------------------------

    def finish(self, cut_short: bool, failed: Iterable[str] = ()) -> None:
        """Read the run from disk, judge it, and write the results into its folder.

        ``failed``: node ids of the planned tests that failed.
        """
        self._mark_unreported()
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
        self._add_notes(run, manifest)
        self.judged.write(self.folder)
        self._write_manifest(manifest, run.measurements())
        self.folder.release()

    def _is_error(self, nodeid: str, run: Run) -> bool:
        """Return whether the item of a test is an error in the run, which its gates count."""
        planned = self.plan.by_nodeid[nodeid]
        measurement = run.by_plan.get((planned.model, planned.result))
        item = None if measurement is None else measurement.items.get(planned.item)
        return item is not None and Outcome.ERROR in item.outcomes

    def _judge(self, run: Run, failed_tests: int) -> JudgedRun:
        options: dict[str, Any] = {
            "failed_tests": failed_tests,
            "earlier": self._earlier_folders,
            "allow_undecided": self.settings.allow_undecided,
            "gated": self.settings.shard is None,
            "overlap": self._overlap,
            "references": self._references,
        }
        if self.baseline is None:
            assert isinstance(self._baseline_name, NotCompared)
            return judge_run(run, self.thresholds, self._baseline_name, **options)
        try:
            allowed = self.settings.allow_mismatch
            return judge_run(run, self.thresholds, self.baseline, allow_mismatch=allowed, **options)
        except ConfigError as error:
            self.notes.append(str(error))
            not_compared = NotCompared("undecided", f"not comparable: {error}")
            return judge_run(run, self.thresholds, not_compared, **options)

    def _add_notes(self, run: Run, manifest: Mapping[str, Any]) -> None:
        self.notes += usage_lines(self.usage, self.settings.prices, resumed=self._is_resumed)
        self.notes += self.outcomes.notes()
        self.notes += run_notes(run)
        self.notes += clean_lines(self.judged.results if self.judged is not None else ())
        if self.settings.hybrid and self.judged is not None and not self.judged.hybrids:
            self.notes.append(f"no benchmark ran under {' and '.join(self.settings.hybrid)}")
        if self.thresholds is None:
            self.notes.append(self.no_gates_note)
        if unfinished := unfinished_words(manifest):
            self.notes.append(unfinished)

    def _write_manifest(
        self, manifest: dict[str, Any], measurements: Sequence[Measurement]
    ) -> None:
        manifest["finished"] = now()
        manifest["model_fingerprints"] = {
            measurement.result.model: measurement.model_fingerprint
            for measurement in measurements
            if measurement.model_fingerprint
        }
        manifest["answers"] = count_answers(measurements)
        # The time of a resumed run includes earlier sessions.
        manifest["seconds"] = manifest.get("seconds", 0.0) + time.monotonic() - self._start_time
        manifest = with_usage(manifest, self.usage, self.settings.prices)
        if self._baseline_name is not NO_BASELINE:
            first = isinstance(self._baseline_name, NotCompared)
            manifest["baseline"] = FIRST_RUN_OPTION if first else self._baseline_name
        self.folder.write("run.json", manifest)

    def write_reports(self) -> None:
        """Write the reports of ``--llm-report`` from the files of the run."""
        for name in self.settings.reports:
            file = write_report(name, ReportInput(self.folder.path, self.baseline))
            self.notes.append(f"report: {run_name(file)}")

    @property
    def is_empty(self) -> bool:
        """True if a new run has no answer, because its model could not be loaded."""
        if self._is_resumed or self.usage or not self.plan.items:
            return False
        # There may be an answer that no test got, because its scorer lacked a model.
        return self.outcomes.count(UNANSWERED) == len(self.outcomes.by_nodeid) and not any(
            record.text is not None or record.logprobs
            for record in read_records(self.folder.records)
        )

    @property
    def thresholds_name(self) -> str:
        """Name of the thresholds file, the beginning of the gates' test ids."""
        return self.settings.thresholds.name if self.settings.thresholds else "thresholds.toml"

    @property
    def gated(self) -> bool:
        """True if gates are judged; not for a shard, which has only a part of the items."""
        return self.thresholds is not None and self.settings.shard is None

    @property
    def verdict(self) -> str:
        """Verdict on the run: ``pass``, ``fail`` or ``not gated``."""
        return "not gated" if self.judged is None else self.judged.verdict

    def _mark_unreported(self) -> None:
        """Mark records whose test was not reported as left out, so that both counts agree."""
        unreported: set[tuple[str, str, str, str]] = set()
        fingerprints = [self.plan.fingerprints(n) for n in range(len(self.plan.results))]
        for planned in self.plan.items:
            if planned.nodeid not in self.outcomes.by_nodeid:
                benchmark = self.plan.results[planned.result].benchmark
                model = "" if self.plan.own_model else self.plan.models[planned.model]
                for fingerprint in fingerprints[planned.result]:
                    unreported.add((model, benchmark, fingerprint, planned.item))
        if not unreported:
            return
        for record in latest_records(self.folder.records):
            model = "" if self.plan.own_model else record.model
            key = (model, record.benchmark, record.protocol, record.item)
            if key in unreported and not record.left_out:
                self._writer.append(replace(record, left_out=True))
