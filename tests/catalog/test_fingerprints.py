"""The fingerprints of all protocols of the catalog: stored runs are compared by them.

A fingerprint changes with the version of its scorer, and on purpose only. After such a change, which
CHANGELOG.md names, the table is written again by ``python tests/catalog/test_fingerprints.py``.
"""

from __future__ import annotations

import json

from pytest_llmeval import catalog
from pytest_llmeval.core import Benchmark
from pytest_llmeval.evaluation.fingerprint import fingerprint
from support.paths import GOLDEN_FILES

TABLE = GOLDEN_FILES / "fingerprints.json"


def fingerprints() -> dict[str, str]:
    """``mmlu/lmeval letter`` → fingerprint, of every benchmark that needs no argument."""
    benchmarks = [getattr(catalog, name)() for name in catalog.NAMES]
    return {
        f"{benchmark.name}/{protocol.name} {protocol.scorer}": fingerprint(protocol)
        for benchmark in benchmarks
        if isinstance(benchmark, Benchmark)
        for protocol in benchmark.protocols
    }


def test_fingerprints_are_those_of_stored_runs():
    stored, now = json.loads(TABLE.read_text()), fingerprints()
    assert {name: now.get(name) for name in stored} == stored
    assert now.keys() == stored.keys()


if __name__ == "__main__":
    TABLE.write_text(json.dumps(fingerprints(), indent=1, sort_keys=True) + "\n")
