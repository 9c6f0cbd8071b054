"""The judging side of a session: one run folder, all outcomes, the verdicts, the exit code.

Lives in the process that reports: the main one, or the xdist controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import overall
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.models import load_model
from pytest_llmeval.options import Settings
from pytest_llmeval.plan import Plan
from pytest_llmeval.plan import PlannedItem
from pytest_llmeval.runs.folder import RunFolder
from pytest_llmeval.runs.folder import create_run
from pytest_llmeval.runs.folder import describe
from pytest_llmeval.runs.folder import find_resumable
from pytest_llmeval.runs.records import RecordWriter
from pytest_llmeval.runs.records import key
from pytest_llmeval.runs.records import read_records
from pytest_llmeval.runs.run import metrics_entry
from pytest_llmeval.scorers import SCORERS


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What a test report says about its item; travels from worker to controller as a dict."""

    outcome: str
    model: str
    scorer: str
    protocol: str
    fingerprint: str | None = None
    dropped_shots: int = 0
    tie: bool = False
    reused: bool = False
    overruled: bool = False

    def to_wire(self) -> dict[str, Any]:
        # Not asdict, whose deep copy would cost more than the test that is reported.
        return {name: getattr(self, name) for name in self.__slots__}


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
        self.outcomes: dict[str, ItemOutcome] = {}
        self.verdicts: list[Verdict] = []
        self.results: list[Result] = []
        self._check_models()
        self.thresholds = self._read_thresholds()
        self.folder = self._open_folder(list(command))
        self._writer = RecordWriter(self.folder.records)

    def _check_models(self) -> None:
        """Open every model and see that it can answer what is planned, under distinct names."""
        for spec in () if self.plan.own_model else self.settings.models:
            model = load_model(spec)
            names: dict[tuple[str, str], str] = {}
            for result in self.plan.results:
                if result.ask in model.asks:
                    scorer = result.scorer
                elif result.generated and "text" in model.asks:
                    (scorer,) = result.generated.values()
                else:
                    raise ConfigError(
                        f"--llm-model {spec} cannot generate text, which protocol"
                        f" {result.protocol_name!r} of {result.benchmark} needs"
                    )
                other = names.setdefault((result.benchmark, scorer), result.protocol_name)
                if other != result.protocol_name:
                    raise ConfigError(
                        f"--llm-model {spec} gives only text, so protocols {other!r} and"
                        f" {result.protocol_name!r} would both give the result"
                        f" ({result.benchmark}, {scorer}): run one of them"
                    )

    def _read_thresholds(self) -> Thresholds | None:
        if self.settings.thresholds is None:
            return None
        thresholds = load_thresholds(self.settings.thresholds)
        collected = collected_benchmarks(
            (result.benchmark, result.scorer, result.subjects, result.chance)
            for result in self.plan.results
        )
        # The catalog is asked for names only here, where a file names benchmarks.
        from pytest_llmeval.catalog import NAMES

        check_names(thresholds, NAMES, collected, known_scorers=SCORERS)
        return thresholds

    def _open_folder(self, command: list[str]) -> RunFolder:
        root = self.settings.runs
        if self.settings.resume:
            found = find_resumable(root, self.plan)
            if isinstance(found, RunFolder):
                # Damage is told before a model is loaded or a document replaced.
                for _ in read_records(found.records):
                    pass
                found.claim()
                manifest = found.read("run.json")
                manifest["status"] = "running"
                manifest.setdefault("resumed", []).append(_now())
                found.write("run.json", manifest)
                return found
            if found is not None:
                self.notes.append(f"nothing to resume: {found}; a new run was started")
        manifest = describe(self.plan, command, seed=self.settings.seed, limit=self.settings.limit)
        folder = create_run(root, self.plan, manifest)
        folder.claim()
        return folder

    # Outcomes --------------------------------------------------------------------------

    def receive(self, nodeid: str, value: Mapping[str, Any]) -> None:
        """Take the outcome that a test report carries."""
        self.outcomes[nodeid] = ItemOutcome(**value)

    def receive_failure(self, nodeid: str, reason: str) -> None:
        """Note a planned test whose report failed without an outcome (a dead worker, say)."""
        planned = self.plan.by_nodeid[nodeid]
        result = self.plan.results[planned.result]
        spec = self.plan.models[planned.model]
        self.outcomes[nodeid] = ItemOutcome(Outcome.ERROR, spec, result.scorer, result.fingerprint)
        record = Record(
            model=spec,
            benchmark=result.benchmark,
            scorer=result.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold="",
            error=reason,
            protocol=result.fingerprint,
            data=result.data_hash,
        )
        self._writer.append(record)

    # The end ---------------------------------------------------------------------------

    def finish(self, cut_short: bool) -> None:
        """Compute metrics and verdicts and write them to the run folder."""
        self._leave_out_unreported()
        self._writer.close()
        self._note_what_happened()
        self.results, details = self._collect_results()
        models = list(dict.fromkeys(result.model for result in self.results))
        if self.thresholds is not None:
            self.verdicts = judge(
                self.thresholds,
                self.results,
                models,
                [planned.benchmark for planned in self.plan.results],
            )
            statuses = {verdict.status for verdict in self.verdicts}
            if self.verdict == "fail" and not statuses & {"fail", "undecided"}:
                self.verdicts.append(nothing_decided(self.settings.thresholds))
        self.folder.write("metrics.json", {"results": details})
        self.folder.write(
            "gates.json",
            {
                "thresholds": self.settings.thresholds and self.settings.thresholds.name,
                "verdict": self.verdict,
                "gates": [asdict(verdict) for verdict in self.verdicts],
            },
        )
        manifest = self.folder.read("run.json")
        fingerprints = {
            outcome.model: outcome.fingerprint
            for outcome in self.outcomes.values()
            if outcome.fingerprint
        }
        manifest["status"] = "interrupted" if cut_short else "finished"
        manifest["finished"] = _now()
        manifest["model_fingerprints"] = fingerprints
        self.folder.write("run.json", manifest)
        self.folder.release()

    @property
    def thresholds_name(self) -> str:
        """The name of the gates' file, which the gates' test ids begin with."""
        return self.settings.thresholds.name if self.settings.thresholds else "thresholds.toml"

    @property
    def verdict(self) -> str:
        """``pass``, ``fail``, or ``not gated``."""
        if self.thresholds is None:
            return "not gated"
        return overall(self.verdicts, self.settings.allow_undecided)

    def tolerates(self, nodeid: str) -> bool:
        """Whether a test is an item error that the file's ``max_errors`` allow for."""
        outcome = self.outcomes.get(nodeid)
        if self.thresholds is None or outcome is None or outcome.outcome != Outcome.ERROR:
            return False
        planned = self.plan.by_nodeid[nodeid]
        result = self.results[planned.model * len(self.plan.results) + planned.result]
        gates = self.thresholds.for_model(result.model).get(result.benchmark)
        table = gates and gates.scorers.get(result.scorer, gates)
        return bool(table and result.counts.error <= (table.max_errors or 0))

    def _leave_out_unreported(self) -> None:
        """Mark answers on disk whose test never came to a verdict, so that both tell the same."""
        silent: set[tuple[str, str, str]] = set()
        for planned in self.plan.items:
            if planned.nodeid not in self.outcomes:
                result = self.plan.results[planned.result]
                model = self._label(self.plan.models[planned.model])
                for protocol in (result.fingerprint, *(result.generated or ())):
                    silent.add((model, protocol, planned.item))
        if not silent:
            return
        latest = {key(record): record for record in read_records(self.folder.records)}
        for record in latest.values():
            about = (record.model, record.protocol, record.item)
            if about in silent and not record.left_out:
                self._writer.append(replace(record, left_out=True))

    def _note_what_happened(self) -> None:
        reused = sum(outcome.reused for outcome in self.outcomes.values())
        if reused:
            self.notes.append(f"{reused:,} answers were taken from what the run had on disk")
        overruled = sum(outcome.overruled for outcome in self.outcomes.values())
        if overruled:
            self.notes.append(
                f"{overruled:,} items count as correct by their test's body, against the scorer"
            )

    def _collect_results(self) -> tuple[list[Result], list[dict[str, Any]]]:
        groups: dict[tuple[int, int], list[PlannedItem]] = {
            (model, result): []
            for model in range(len(self.plan.models))
            for result in range(len(self.plan.results))
        }
        for item in self.plan.items:
            groups[item.model, item.result].append(item)
        results, details = [], []
        for (model, number), items in groups.items():
            planned = self.plan.results[number]
            seen = [one for item in items if (one := self.outcomes.get(item.nodeid))]
            # A model that gives only text is scored by another scorer than was planned: the
            # items that were answered say which.
            answered = next((one for one in seen if one.outcome != Outcome.ERROR), None)
            result = Result(
                model=self._label(self.plan.models[model]),
                benchmark=planned.benchmark,
                scorer=answered.scorer if answered else planned.scorer,
                protocol=planned.protocol_name,
                chance=planned.chance,
                subjects=_count(planned.subjects, items, self.outcomes),
                dropped_shots=sum(one.dropped_shots > 0 for one in seen),
                ties=sum(one.tie for one in seen),
            )
            results.append(result)
            fingerprint = answered.protocol if answered else planned.fingerprint
            details.append(metrics_entry(result, fingerprint, planned.data_hash))
        return results, details

    def _label(self, spec: str) -> str:
        """What a model is called: its spec, or the name of the one a user's fixture made."""
        if not self.plan.own_model:
            return spec
        return next((one.model for one in self.outcomes.values() if one.model != spec), spec)


def nothing_decided(thresholds: Path | None) -> Verdict:
    """The verdict on a run that no gate of its file had anything to say about (rule 2)."""
    reason = f"no gate of {thresholds.name if thresholds else 'the file'} was decided by this run"
    return Verdict("no-gate", None, "", None, None, None, "", None, None, 0, "fail", reason)


def _count(
    sizes: Mapping[str, int], items: Iterable[PlannedItem], outcomes: Mapping[str, ItemOutcome]
) -> dict[str, Counts]:
    found: dict[str, dict[str, int]] = {subject: {} for subject in sizes}
    for item in items:
        outcome = outcomes.get(item.nodeid)
        if outcome is not None:
            counts = found[item.subject]
            counts[outcome.outcome] = counts.get(outcome.outcome, 0) + 1
    blank = Counts(total=0)
    return {
        subject: replace(blank, total=sizes[subject], **counts) for subject, counts in found.items()
    }


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
