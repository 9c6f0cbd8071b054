"""A run with what was decided about it: the content of summaries, annotations and exports."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval.core import RunError
from pytest_llmeval.gates import VALUELESS
from pytest_llmeval.gates import State
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import fold
from pytest_llmeval.gates import worst_first
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import spent
from pytest_llmeval.storage.folder import RunFolder


@dataclass(frozen=True)
class Regressed:
    """A subject that is significantly worse than in the baseline; ``result`` as ``mmlu[letter]``.

    ``drop`` is baseline less candidate, a proportion; ``p_value`` is Holm-adjusted.
    """

    result: str
    model: str
    subject: str
    items: int
    baseline: float
    candidate: float
    drop: float
    p_value: float

    @property
    def words(self) -> str:
        """``mmlu[letter], law: 0.6000 -> 0.4500 over 100 items, p = 0.0035 (Holm)``."""
        return (
            f"{self.result}, {self.subject}: {self.baseline:.4f} -> {self.candidate:.4f} over"
            f" {self.items:,} items, p = {self.p_value:.2g} (Holm)"
        )


@dataclass(frozen=True)
class JudgedRun:
    """The documents of a run folder: ``run.json``, ``metrics.json``, ``gates.json``, comparison.

    ``verdict`` is ``pass``, ``fail`` or ``not gated``; ``results`` are the entries of
    ``metrics.json``, ``hybrids`` its weighted ones, ``pairs`` its texts against letters;
    ``comparison`` is None without a baseline. ``thresholds`` is the name of the gates' file,
    ``thresholds_path`` its path from where the session ran. ``items_failed``: items that turned the
    build red, whatever the gates say: by an error that no gate allows for, or as wrong under
    ``--llm-wrong=fail``.
    """

    path: Path
    manifest: Mapping[str, Any]
    results: Sequence[Mapping[str, Any]]
    verdict: str
    verdicts: Sequence[Verdict]
    thresholds: str | None = None
    comparison: Mapping[str, Any] | None = None
    thresholds_path: str | None = None
    hybrids: Sequence[Mapping[str, Any]] = ()
    pairs: Sequence[Mapping[str, Any]] = ()
    items_failed: int = 0

    def write(self, folder: RunFolder) -> None:
        """Write ``metrics.json``, ``gates.json`` and, where there is one, ``comparison.json``.

        Raises RunError where they cannot be written.
        """
        more = {"hybrids": self.hybrids, "pairs": self.pairs}
        folder.write(
            "metrics.json",
            {"results": self.results, **{name: found for name, found in more.items() if found}},
        )
        folder.write(
            "gates.json",
            {
                "thresholds": self.thresholds,
                "path": self.thresholds_path,
                "verdict": self.verdict,
                "items_failed": self.items_failed,
                "gates": [asdict(verdict) for verdict in self.verdicts],
            },
        )
        if self.comparison is not None:
            folder.write("comparison.json", self.comparison)

    @property
    def compared(self) -> RunComparison | None:
        """The comparison as an object. Raises RunError for one of another version."""
        return None if self.comparison is None else RunComparison.from_json(self.comparison)

    @property
    def models(self) -> list[str]:
        """The models that were measured, by the names that their results have."""
        return list(dict.fromkeys(result["model"] for result in self.results))

    @property
    def failed(self) -> list[Verdict]:
        """The gates that failed, worst first; subjects without a value as one."""
        return self._in_state("failed")

    @property
    def undecided(self) -> list[Verdict]:
        """The gates that this run could not decide; subjects without a value as one."""
        return self._in_state("undecided")

    @property
    def warned(self) -> list[Verdict]:
        """The gates that passed with a warning."""
        return self._in_state("warned")

    def _in_state(self, state: State) -> list[Verdict]:
        return [one for one in worst_first(fold(self.verdicts, VALUELESS)) if one.state == state]

    @property
    def errors(self) -> int:
        """Answers that ended in an error."""
        return sum(result["errors"] for result in self.results)

    def regressed(self) -> list[Regressed]:
        """Subjects that are significantly worse than in the baseline, largest drop first."""
        found = list(self._regressed())
        return sorted(found, key=lambda one: (-one.drop, one.result, one.subject))

    def _regressed(self) -> Iterator[Regressed]:
        for comparison in (self.comparison or {}).get("comparisons", ()):
            if not comparison["comparable"]:
                continue
            for subject, one in comparison["subjects"].items():
                if one["drop"] is not None and one["drop"] > 0 and one["adjusted"] <= ALPHA:
                    yield Regressed(
                        f"{comparison['benchmark']}[{comparison['scorer']}]",
                        comparison["candidate"],
                        subject,
                        one["items"],
                        one["baseline"],
                        one["candidate"],
                        one["drop"],
                        one["adjusted"],
                    )


def name_of(result: Mapping[str, Any]) -> str:
    """``mmlu[letter]`` for an entry of ``metrics.json``."""
    return f"{result['benchmark']}[{result['scorer']}]"


def key_of(result: Mapping[str, Any]) -> Key:
    """(model, benchmark, scorer) of an entry of ``metrics.json``."""
    return result["model"], result["benchmark"], result["scorer"]


def read_judged(path: Path, comparison: Mapping[str, Any] | None = None) -> JudgedRun:
    """Read the documents of a run folder; metrics from its records where it was not finished.

    ``comparison``: instead of the session's own, as ``RunComparison.as_json`` gives it. Raises RunError,
    in one line, for what is missing or damaged.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    gates = _document(folder, "gates.json") or {"verdict": "not gated", "gates": []}
    metrics = _document(folder, "metrics.json") or load_run(path).metrics()
    try:
        verdicts = [Verdict.from_json(value) for value in gates["gates"]]
    except TypeError as error:  # a gate with more than this version knows
        raise RunError(f"{path / 'gates.json'}: damaged, or of another version: {error}") from None
    return JudgedRun(
        path=path,
        manifest=manifest,
        results=metrics["results"],
        verdict=gates["verdict"],
        verdicts=verdicts,
        thresholds=gates.get("thresholds"),
        comparison=comparison or _document(folder, "comparison.json"),
        thresholds_path=gates.get("path"),
        hybrids=metrics.get("hybrids", ()),
        pairs=metrics.get("pairs", ()),
        items_failed=gates.get("items_failed", 0),
    )


def used(run: JudgedRun) -> dict[Key, Spent]:
    """What the answers of each result took, from the run's records."""
    return spent(RunFolder(run.path).latest_records(run.manifest))


def _document(folder: RunFolder, name: str) -> dict[str, Any] | None:
    return folder.read(name) if (folder.path / name).exists() else None
