"""Content of the page for one result, as a plain dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import option_index
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import calibration
from pytest_llmeval.metrics import choice_confidence
from pytest_llmeval.metrics import summarize
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.overlap.report import BenchmarkOverlap
from pytest_llmeval.reports.html.items import CLOZE
from pytest_llmeval.reports.html.items import ItemRecords
from pytest_llmeval.reports.html.items import item_details
from pytest_llmeval.reports.html.items import item_index
from pytest_llmeval.reports.html.items import scored_values
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.overlap import clean_words
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import protocol_words
from pytest_llmeval.reports.wording import resolved_words
from pytest_llmeval.reports.wording import sampled_words
from pytest_llmeval.reports.wording import stopped_words
from pytest_llmeval.reports.wording import tie_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.reports.wording import weakest_subjects
from pytest_llmeval.runs.judging import result_key
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.reply_problems import doubtful_patches_note
from pytest_llmeval.runs.reply_problems import error_groups
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import samples_of
from pytest_llmeval.storage.prompts import StoredPrompt

# Areas of the evaluation code of Hendrycks et al. 2021 (arXiv:2009.03300), categories.py.
_MMLU: Mapping[str, str] = {
    "STEM": (
        "abstract_algebra astronomy college_biology college_chemistry college_computer_science"
        " college_mathematics college_physics computer_security conceptual_physics"
        " electrical_engineering elementary_mathematics high_school_biology high_school_chemistry"
        " high_school_computer_science high_school_mathematics high_school_physics"
        " high_school_statistics machine_learning"
    ),
    "Humanities": (
        "formal_logic high_school_european_history high_school_us_history"
        " high_school_world_history international_law jurisprudence logical_fallacies"
        " moral_disputes moral_scenarios philosophy prehistory professional_law world_religions"
    ),
    "Social sciences": (
        "econometrics high_school_geography high_school_government_and_politics"
        " high_school_macroeconomics high_school_microeconomics high_school_psychology"
        " human_sexuality professional_psychology public_relations security_studies sociology"
        " us_foreign_policy"
    ),
    "Other": (
        "anatomy business_ethics clinical_knowledge college_medicine global_facts human_aging"
        " management marketing medical_genetics miscellaneous nutrition professional_accounting"
        " professional_medicine virology"
    ),
}

_AREA_OF = {subject: area for area, subjects in _MMLU.items() for subject in subjects.split()}


_WEAKEST = 5

_FEWEST = 3
"""Minimum of subjects for areas: a single one may share a name with MMLU, such as miscellaneous."""


def areas_of(subjects: Collection[str]) -> dict[str, list[str]] | None:
    """Return area → its subjects, in the areas' order.

    Areas are known by the names of the subjects, so that other data sets with MMLU's subjects have
    them, too. None for fewer than three subjects and if a subject's area is not known.
    """
    if len(subjects) < _FEWEST:
        return None
    subjects_by_area: dict[str, list[str]] = {area: [] for area in _MMLU}
    for subject in sorted(subjects):
        area = _AREA_OF.get(subject)
        if area is None:
            return None
        subjects_by_area[area].append(subject)
    return {area: members for area, members in subjects_by_area.items() if members} or None


@dataclass(frozen=True)
class MeasurementRecords:
    """Measurement with the records behind it."""

    measurement: Measurement
    items: Mapping[str, Sequence[Record]]
    """Item → the records of its samples, in order."""

    @property
    def records(self) -> list[Record]:
        """All records, item by item."""
        return [record for samples in self.items.values() for record in samples]

    @property
    def key(self) -> tuple[str, str, str]:
        """(model, benchmark, scorer)."""
        return self.measurement.result.key

    def scores_again(self, first: MeasurementRecords) -> bool:
        """Return True if this is another scorer's result on the responses of ``first``."""
        return (
            self.measurement.shares_responses
            and not first.measurement.shares_responses
            and self.key[:2] == first.key[:2]
            and any(record.response_of == first.key[2] for record in self.records[:1])
        )


def measurements_with_records(run: Run) -> list[MeasurementRecords]:
    """Return the run's measurements with their records by item."""
    measured = []
    for measurement, records in run.answers():
        items = samples_of(records)
        measured.append(
            MeasurementRecords(
                measurement,
                {item: items[item][: measurement.result.samples] for item in measurement.items},
            )
        )
    return measured


def result_data(
    measured: MeasurementRecords,
    all_measured: Sequence[MeasurementRecords],
    sources: Sources,
    shots: dict[tuple[str, str], int],
) -> dict[str, Any]:
    """Return the content for one result of ``all_measured``.

    ``shots``: the page's table of shots, to which new ones are added.
    """
    measurement, records = measured.measurement, measured.records
    numbers = summarize(measurement.result)
    compared = _comparison(sources.judged.comparison, measured.key)
    stored: Mapping[str, Any] = next(
        (m for m in sources.judged.results if result_key(m) == measured.key), {}
    )
    others = {other.key[2]: other.items for other in all_measured if other.scores_again(measured)}
    # Other scorers of the same responses refer to the result that holds them.
    prompts = _prompts_of(sources.prompts, measurement)
    owner = next((n for n, m in enumerate(all_measured) if measured.scores_again(m)), None)
    subjects, weakest = weakest_subjects(numbers, _WEAKEST)
    doubtful = stored.get("doubtful")
    overlap = _overlap(sources, measurement) if "overlap" in stored else None
    return {
        "name": measurement.name,
        "numbers": numbers,
        "protocol": {
            "name": measurement.result.protocol,
            "words": protocol_words(measurement.protocol, measurement.request_mode),
            "fingerprint": measurement.fingerprint,
            "data": measurement.data_hash,
            "chat": bool(measurement.protocol["chat"]),
            "ties": tie_words(measurement.result.scorer),
            "all_tied": all_tied_words(numbers),
            "resolved": resolved_words(numbers),
            "truncated": truncated_words(numbers),
            "per_character": measurement.result.scorer == CLOZE,
        },
        "sampled": sampled_words(numbers)
        if numbers["sampled"] is not None
        else stopped_words(numbers),
        "measured_subjects": subjects,
        "weakest": [[entry.subject, entry.text] for entry in weakest],
        "areas": _areas(measurement.result, compared),
        "comparison": compared,
        "calibration": _calibration(measured.items, prompts),
        "outcomes": _breakdown(records),
        "audit": stored.get("audit"),
        "extraction": stored.get("extraction"),
        "doubtful": doubtful_patches_note(doubtful) if doubtful else None,
        "items": item_index(
            measured.items, _flips(compared), _before(sources, compared), _corpus_marks(overlap)
        ),
        "details_of": all_measured.index(measured) if owner is None else owner,
        "details": item_details(
            measured.items, others, prompts, shots, overlap.overlapping if overlap else {}
        )
        if owner is None
        else None,
        "clean": clean_words(stored),
    }


def _overlap(sources: Sources, measurement: Measurement) -> BenchmarkOverlap | None:
    report = sources.judged.overlap
    name = measurement.result.benchmark
    return None if report is None else report.find(name, measurement.data_hash)


def _corpus_marks(overlap: BenchmarkOverlap | None) -> dict[str, str]:
    if overlap is None:
        return {}
    return {**dict.fromkeys(overlap.unjudged, "n"), **dict.fromkeys(overlap.overlapping, "o")}


def _prompts_of(
    prompts: Mapping[tuple[str, str, str], StoredPrompt], measurement: Measurement
) -> dict[str, StoredPrompt]:
    benchmark, fingerprint = measurement.result.benchmark, measurement.fingerprint
    return {
        item: prompts[key]
        for item in measurement.items
        if (key := (benchmark, fingerprint, item)) in prompts
    }


def _areas(result: Result, compared: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """Return the areas with their accuracy over items; None if the subjects have no areas."""
    subjects, measured = result.subjects, result.is_measurement
    areas = areas_of(subjects)
    if areas is None:
        return None
    entries = []
    for area, members in areas.items():
        counts = sum((subjects[name] for name in members), Counts(0))
        defined = measured and counts.answered and counts.is_measurement and not counts.error
        entries.append(
            {
                "name": area,
                "subjects": members,
                "accuracy": counts.correct / counts.answered if defined else None,
                "interval": list(tally_interval(counts.tally))
                if defined and not result.stopped
                else None,
                "baseline": _area_baseline(members, compared),
            }
        )
    return entries


def _area_baseline(members: Sequence[str], compared: Mapping[str, Any] | None) -> float | None:
    """Return the baseline's accuracy over an area's paired items."""
    if compared is None:
        return None
    subjects = [compared["subjects"][name] for name in members if name in compared["subjects"]]
    items = sum(subject["items"] for subject in subjects)
    correct = sum(subject["items"] * (subject["baseline"] or 0) for subject in subjects)
    return correct / items if items else None


def _comparison(
    document: Mapping[str, Any] | None, key: tuple[str, str, str]
) -> dict[str, Any] | None:
    model, benchmark, scorer = key
    for entry in (document or {}).get("comparisons", ()):
        if (entry["candidate"], entry["benchmark"], entry["scorer"]) == (model, benchmark, scorer):
            name = f"{benchmark}[{scorer}]"
            differences = [
                f"{mismatch['field']}: {mismatch['baseline']} against {mismatch['candidate']}"
                for mismatch in (document or {}).get("mismatches", ())
                if mismatch["result"] == name
                and mismatch.get("models") in (None, [entry["baseline"], entry["candidate"]])
            ]
            return {**entry, "differences": differences}
    return None


def _flips(compared: Mapping[str, Any] | None) -> dict[str, str]:
    if compared is None:
        return {}
    wrong, right = compared["newly_wrong"], compared["newly_right"]
    return {**dict.fromkeys(wrong, "w"), **dict.fromkeys(right, "r")}


def _before(sources: Sources, compared: Mapping[str, Any] | None) -> Mapping[str, Sequence[Record]]:
    """Return the baseline's records of a result's items; empty if they are not available."""
    if compared is None or sources.baseline is None:
        return {}
    about = (compared["baseline"], compared["benchmark"], compared["scorer"])
    return next(
        (
            measurement.items
            for measurement in measurements_with_records(sources.baseline)
            if measurement.key == about
        ),
        {},
    )


def _calibration(items: ItemRecords, prompts: Mapping[str, StoredPrompt]) -> dict[str, Any] | None:
    """Return the reliability diagram of answers that were compared by log-likelihood."""
    pairs = []
    for name, samples in items.items():
        for record in samples:
            values = scored_values(record, prompts.get(name))
            if record.outcome is Outcome.ERROR or values is None or record.answer is None:
                continue
            confidence = choice_confidence(values, option_index(record.answer) or 0)
            if confidence is not None:
                pairs.append((confidence, record.outcome is Outcome.CORRECT))
    diagram = calibration(pairs)
    return None if diagram is None else asdict(diagram)


def _why_unparsed(record: Record) -> str:
    """Describe why an answer could not be read."""
    if record.finish_reason == REFUSED:
        return "refused by the model"
    if record.finish_reason == FILTERED:
        return "withheld by a content filter"
    if record.truncated:
        return "cut off at the token limit"
    if record.text is not None and not record.text.strip():
        thought = (record.reasoning or "").strip()
        return "reasoning without an answer" if thought else "nothing was written"
    return "no answer in the text"


def _breakdown(records: Sequence[Record]) -> dict[str, Any]:
    """Count the errors, the unparsed answers and the finish reasons by kind."""
    unparsed: Counter[str] = Counter()
    finishes: Counter[str] = Counter()
    for record in records:
        if record.outcome is not Outcome.ERROR and record.finish_reason:
            finishes[record.finish_reason] += 1
        if record.outcome is Outcome.UNPARSED:
            unparsed[_why_unparsed(record)] += 1
    failures = error_groups(records)
    return {
        "errors": [asdict(group) for group in failures[:5]],
        "kinds_of_errors": len(failures),
        "unparsed": [list(entry) for entry in unparsed.most_common()],
        "finish_reasons": [list(entry) for entry in finishes.most_common()],
    }
