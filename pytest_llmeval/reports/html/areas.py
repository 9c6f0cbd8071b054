"""The areas that a benchmark's authors put its subjects in."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping

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
