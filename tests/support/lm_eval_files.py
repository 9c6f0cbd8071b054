"""YAML files of lm-eval over the public data, and a model of lm-eval with made-up answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.model import LM

CHOICE_FILE = """
task: local_choices
dataset_path: json
dataset_kwargs:
  data_files: {{test: {folder}/rows.jsonl, train: {folder}/shots.jsonl}}
test_split: test
training_split: train
fewshot_split: train
output_type: multiple_choice
description: "Answer.\\n\\n"
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
doc_to_choice: "{{{{options}}}}"
num_fewshot: 2
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_bytes, aggregation: mean, higher_is_better: true}}
  - {{metric: mcc, aggregation: matthews_corrcoef, higher_is_better: true}}
metadata: {{version: 1.0}}
"""

TEXT_FILE = """
include: {gsm8k}
task: local_gsm8k
dataset_path: json
dataset_name: null
dataset_kwargs:
  data_files: {{test: {data}/gsm8k/test.jsonl, train: {data}/gsm8k/train.jsonl}}
num_fewshot: 2
"""

MMLU_FILE = """
task: local_mmlu_{subject}
dataset_path: csv
dataset_kwargs:
  data_files:
    test: {data}/mmlu_hf_csv/test/{subject}_test.csv
    dev: {data}/mmlu_hf_csv/dev/{subject}_dev.csv
  keep_default_na: false
test_split: test
fewshot_split: dev
fewshot_config: {{sampler: first_n}}
output_type: multiple_choice
description: "The following are questions about {subject}.\\n\\n"
doc_to_text: "{{{{question.strip()}}}}\\nA. {{{{choice0}}}}\\nB. {{{{choice1}}}}\\nC. {{{{choice2}}}}\\nD. {{{{choice3}}}}\\nAnswer:"
doc_to_choice: ["A", "B", "C", "D"]
doc_to_target: answer
"""

GROUP_FILE = """
group: local_mmlu
task: [local_mmlu_anatomy, local_mmlu_abstract_algebra]
aggregate_metric_list:
  - {metric: acc, weight_by_size: true}
"""

SUBJECTS = ("anatomy", "abstract_algebra")


def write_files(folder: Path, data: Path) -> Path:
    """Write the files into a folder, and return it."""
    import lm_eval

    folder.mkdir()
    rows = [
        {
            "question": f"Which is {number}? é",
            "options": [f"it is {number + k}" + " é" * k for k in range(3 + number % 2)],
            "answer": number % 3,
        }
        for number in range(24)
    ]
    for name, part in (("rows", rows), ("shots", rows[:7])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    gsm8k = Path(lm_eval.__file__).parent / "tasks" / "gsm8k" / "gsm8k.yaml"
    texts = {
        "choices": CHOICE_FILE.format(folder=folder),
        "text": TEXT_FILE.format(gsm8k=gsm8k, data=data),
        "group": GROUP_FILE,
        **{subject: MMLU_FILE.format(subject=subject, data=data) for subject in SUBJECTS},
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


class MadeUp(LM):
    """Model whose log-likelihoods and texts are a function of the request.

    In a chat, the context is the messages as JSON.
    """

    tokenizer_name = "none"

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Any] = []

    def loglikelihood(self, requests: Sequence[Any], **_: Any) -> list[tuple[float, bool]]:
        self.requests += requests
        return [(made_up_logprob(*request.args), False) for request in requests]

    def generate_until(self, requests: Sequence[Any], **_: Any) -> list[str]:
        self.requests += requests
        return [made_up_text(request.args[0], request.doc["answer"]) for request in requests]

    def loglikelihood_rolling(self, requests: Any) -> Any:
        raise NotImplementedError

    def apply_chat_template(self, history: Any, add_generation_prompt: bool = True) -> str:
        return json.dumps(history)

    def chat_template(self, *_: Any) -> str:
        return "messages"


def made_up_logprob(context: str, continuation: str) -> float:
    """A multiple of 1/8, so that ties occur."""
    digest = hashlib.sha256(f"{context}|{continuation}".encode()).digest()
    return -1.0 - digest[0] % 64 / 8


def made_up_text(context: str, gold: str) -> str:
    """The solution, its number without GSM8K's mark, another number, or no number."""
    kind, number = hashlib.sha256(context.encode()).digest()[:2]
    right = gold.rpartition("#### ")[2]
    return (gold, f"It is {right}", f"So #### {number}.", "I do not know")[kind % 4]


def evaluate(task: str, manager: Any, limit: int | None, **options: Any) -> Mapping[str, Any]:
    """Run lm-eval with the made-up model; its results with logged samples, and the requests."""
    import lm_eval

    model = MadeUp()
    results = lm_eval.simple_evaluate(
        model=model,
        tasks=[task],
        task_manager=manager,
        limit=limit,
        bootstrap_iters=0,
        log_samples=True,
        **options,
    )
    return {**results, "requests": model.requests}
