"""One result of a run as a plain dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import FILTERED
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import calibration
from pytest_llmeval.metrics import choice_confidence
from pytest_llmeval.metrics import summarize
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.reports.html.items import CLOZE
from pytest_llmeval.reports.html.items import ItemRecords
from pytest_llmeval.reports.html.items import details
from pytest_llmeval.reports.html.items import index
from pytest_llmeval.reports.html.items import scored_values
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.wording import all_tied_words
from pytest_llmeval.reports.wording import protocol_words
from pytest_llmeval.reports.wording import tie_words
from pytest_llmeval.reports.wording import truncated_words
from pytest_llmeval.runs.judging import key_of
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.reply_problems import failures_of
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import samples_of
from pytest_llmeval.storage.prompts import StoredPrompt

# As the evaluation code of Hendrycks et al. 2021 (arXiv:2009.03300) sums them up, categories.py.
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


_FEWEST = 3
"""Subjects that are divided into areas. One alone has a name of MMLU's by chance: miscellaneous."""


def areas_of(subjects: Collection[str]) -> dict[str, list[str]] | None:
    """Area → its subjects, in the areas' order; None where a subject's area is not known.

    By the names of the subjects, so that another data set with MMLU's subjects has them too. None
    for one or two subjects.
    """
    if len(subjects) < _FEWEST:
        return None
    found: dict[str, list[str]] = {area: [] for area in _MMLU}
    for subject in sorted(subjects):
        area = _AREA_OF.get(subject)
        if area is None:
            return None
        found[area].append(subject)
    return {area: members for area, members in found.items() if members} or None


@dataclass(frozen=True)
class Answered:
    """A measurement with the records behind it: item → those of its samples, in order."""

    measurement: Measurement
    items: Mapping[str, Sequence[Record]]

    @property
    def records(self) -> list[Record]:
        return [record for samples in self.items.values() for record in samples]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.measurement.result.key

    def scores_again(self, first: Answered) -> bool:
        """Whether it is another scorer's verdict on the responses that ``first`` holds."""
        return (
            self.measurement.scored_again
            and not first.measurement.scored_again
            and self.key[:2] == first.key[:2]
            and any(one.response_of == first.key[2] for one in self.records[:1])
        )


def answered(run: Run) -> list[Answered]:
    """The run's measurements with their records by item."""
    found = []
    for one, records in run.answers():
        items = samples_of(records)
        found.append(Answered(one, {item: items[item][: one.result.samples] for item in one.items}))
    return found


def result_data(
    one: Answered,
    every: Sequence[Answered],
    sources: Sources,
    shots: dict[tuple[str, str], int],
) -> dict[str, Any]:
    """What the page shows of one result; ``shots``: the page's table of them, which is added to."""
    measurement, records = one.measurement, one.records
    numbers = summarize(measurement.result)
    compared = _comparison(sources.judged.comparison, one.key)
    stored: Mapping[str, Any] = next(
        (m for m in sources.judged.results if key_of(m) == one.key), {}
    )
    others = {other.key[2]: other.items for other in every if other.scores_again(one)}
    # Other scorers of the same responses point to the result that holds them.
    prompts = _prompts_of(sources.prompts, measurement)
    owner = next((n for n, first in enumerate(every) if one.scores_again(first)), None)
    return {
        "name": measurement.name,
        "numbers": numbers,
        "protocol": {
            "name": measurement.result.protocol,
            "words": protocol_words(measurement.protocol, measurement.asked),
            "fingerprint": measurement.fingerprint,
            "data": measurement.data_hash,
            "chat": bool(measurement.protocol["chat"]),
            "ties": tie_words(measurement.result.scorer),
            "all_tied": all_tied_words(numbers),
            "truncated": truncated_words(numbers),
            "per_character": measurement.result.scorer == CLOZE,
        },
        "areas": _areas(measurement.result, compared),
        "comparison": compared,
        "calibration": _calibration(one.items, prompts),
        "outcomes": _breakdown(records),
        "audit": stored.get("audit"),
        "extraction": stored.get("extraction"),
        "items": index(one.items, _flips(compared), _before(sources, compared)),
        "details_of": every.index(one) if owner is None else owner,
        "details": details(one.items, others, prompts, shots) if owner is None else None,
    }


def _prompts_of(
    prompts: Mapping[tuple[str, str, str], StoredPrompt], one: Measurement
) -> dict[str, StoredPrompt]:
    return {
        item: prompts[key]
        for item in one.items
        if (key := (one.result.benchmark, one.fingerprint, item)) in prompts
    }


def _areas(result: Result, compared: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """The areas with their own accuracy over items, where the subjects' areas are known."""
    subjects, measured = result.subjects, result.is_measurement
    areas = areas_of(subjects)
    if areas is None:
        return None
    shown = []
    for area, members in areas.items():
        counts = sum((subjects[name] for name in members), Counts(0))
        known = measured and counts.answered and counts.is_measurement and not counts.error
        shown.append(
            {
                "name": area,
                "subjects": members,
                "accuracy": counts.correct / counts.answered if known else None,
                "interval": list(tally_interval(counts.tally)) if known else None,
                "baseline": _area_before(members, compared),
            }
        )
    return shown


def _area_before(members: Sequence[str], compared: Mapping[str, Any] | None) -> float | None:
    """The baseline's accuracy over an area's paired items."""
    if compared is None:
        return None
    found = [compared["subjects"][name] for name in members if name in compared["subjects"]]
    items = sum(one["items"] for one in found)
    return sum(one["items"] * (one["baseline"] or 0) for one in found) / items if items else None


def _comparison(
    document: Mapping[str, Any] | None, key: tuple[str, str, str]
) -> dict[str, Any] | None:
    model, benchmark, scorer = key
    for one in (document or {}).get("comparisons", ()):
        if (one["candidate"], one["benchmark"], one["scorer"]) == (model, benchmark, scorer):
            name = f"{benchmark}[{scorer}]"
            differences = [
                f"{entry['field']}: {entry['baseline']} against {entry['candidate']}"
                for entry in (document or {}).get("mismatches", ())
                if entry["result"] == name
                and entry.get("models") in (None, [one["baseline"], one["candidate"]])
            ]
            return {**one, "differences": differences}
    return None


def _flips(compared: Mapping[str, Any] | None) -> dict[str, str]:
    if compared is None:
        return {}
    wrong, right = compared["newly_wrong"], compared["newly_right"]
    return {**dict.fromkeys(wrong, "w"), **dict.fromkeys(right, "r")}


def _before(sources: Sources, compared: Mapping[str, Any] | None) -> Mapping[str, Sequence[Record]]:
    """The baseline's records of a result's items; empty where they are not at hand."""
    if compared is None or sources.baseline is None:
        return {}
    about = (compared["baseline"], compared["benchmark"], compared["scorer"])
    return next((one.items for one in answered(sources.baseline) if one.key == about), {})


def _calibration(items: ItemRecords, prompts: Mapping[str, StoredPrompt]) -> dict[str, Any] | None:
    """The reliability diagram of answers that were compared by log-likelihood."""
    pairs = []
    for name, samples in items.items():
        for record in samples:
            values = scored_values(record, prompts.get(name))
            if record.outcome is Outcome.ERROR or values is None or record.answer is None:
                continue
            confidence = choice_confidence(values, LABELS.index(record.answer))
            if confidence is not None:
                pairs.append((confidence, record.outcome is Outcome.CORRECT))
    found = calibration(pairs)
    return None if found is None else asdict(found)


def _why_unparsed(record: Record) -> str:
    """What is to be seen of an answer that could not be read."""
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
    """How often each kind of error, of answer that cannot be read, and of ending occurred."""
    unparsed: Counter[str] = Counter()
    finishes: Counter[str] = Counter()
    for record in records:
        if record.outcome is not Outcome.ERROR and record.finish_reason:
            finishes[record.finish_reason] += 1
        if record.outcome is Outcome.UNPARSED:
            unparsed[_why_unparsed(record)] += 1
    failures = failures_of(records)
    return {
        "errors": [asdict(one) for one in failures[:5]],
        "kinds_of_errors": len(failures),
        "unparsed": [list(entry) for entry in unparsed.most_common()],
        "finish_reasons": [list(entry) for entry in finishes.most_common()],
    }
