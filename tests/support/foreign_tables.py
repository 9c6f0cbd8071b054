"""Small logs of lighteval and OpenCompass, written here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.foreign_logs import DATE


def lighteval_log(folder: Path, tasks: Mapping[str, Sequence[Any]], **general: Any) -> Path:
    """Results of lighteval with their details; ``tasks``: task → acc of each document."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    results = {
        "config_general": {"model_name": "org/model", "max_samples": None, **general},
        "results": {task: {"acc": sum(own) / len(own)} for task, own in tasks.items()},
        "config_tasks": {
            task: {
                "name": task.partition("|")[0],
                "hf_repo": "/lab/data",
                "metrics": [
                    {
                        "metric_name": "acc",
                        "category": "LOGPROBS",
                        "sample_level_fn": "<Acc object at 0x7f1234abcd>",
                        "corpus_level_fn": "mean",
                    }
                ],
                "num_fewshots": 0,
                "original_num_docs": -1,
                "effective_num_docs": -1,
                "version": 0,
            }
            for task in tasks
        },
    }
    place = folder / "results" / "org" / "model"
    place.mkdir(parents=True)
    (place / f"results_{DATE}.json").write_text(json.dumps(results))
    details = folder / "details" / "org" / "model" / DATE
    details.mkdir(parents=True)
    for task, own in tasks.items():
        rows = [_lighteval_row(task, number, value) for number, value in enumerate(own)]
        table = pa.Table.from_pylist(rows[::-1])  # as shuffled as lighteval's own
        pq.write_table(table, details / f"details_{task}_{DATE}.parquet")
    return place / f"results_{DATE}.json"


def _lighteval_row(task: str, number: int, value: Any) -> dict[str, Any]:
    return {
        "doc": {
            "query": f"{task} {number}?",
            "choices": [" yes", " no"],
            "gold_index": 0,
            "id": str(number),
            "sampling_methods": ["LOGPROBS"],
        },
        "metric": {"acc": value},
        "model_response": {"logprobs": [-1.0, -2.0], "text": []},
    }


def opencompass_log(folder: Path, verdicts: Sequence[Any], *, as_list: bool = False) -> Path:
    """Results of OpenCompass with details, and their predictions."""
    entries = [
        {
            "prompt": f"Question {number}?",
            "origin_prediction": "It is A.",
            "predictions": "A",
            "references": "A",
            "correct": verdict,
        }
        for number, verdict in enumerate(verdicts)
    ]
    details: Any = {"type": "GEN", **{str(n): entry for n, entry in enumerate(entries)}}
    results = {
        "accuracy": 100 * sum(map(bool, verdicts)) / len(verdicts),
        "details": entries if as_list else details,
    }
    predictions = {
        str(number): {"origin_prompt": f"Question {number}?", "prediction": "It is A."}
        for number in range(len(verdicts))
    }
    for name, document in (("results", results), ("predictions", predictions)):
        file = folder / name / "my-model" / "law.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(document))
    return folder / "results" / "my-model" / "law.json"
