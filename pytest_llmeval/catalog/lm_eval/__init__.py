"""Tasks of lm-evaluation-harness as benchmarks, with its own prompts and metrics (extra ``lm-eval``).

The configuration of a task is read and checked where ``lm_eval_task`` is called, without running
code of the task. Its documents are loaded and rendered by lm-eval when the benchmark's items are
needed; its metrics are computed by lm-eval from the responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from os import PathLike
from os import fspath
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.lm_eval.configuration import cleaned
from pytest_llmeval.catalog.lm_eval.configuration import common_decoding
from pytest_llmeval.catalog.lm_eval.configuration import common_metrics
from pytest_llmeval.catalog.lm_eval.configuration import common_output
from pytest_llmeval.catalog.lm_eval.configuration import refusal
from pytest_llmeval.catalog.lm_eval.members import Members
from pytest_llmeval.catalog.lm_eval.members import members_of
from pytest_llmeval.catalog.lm_eval.scoring import register
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.core.validation import check_number
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.lm_eval_documents import Chat
from pytest_llmeval.sources.lm_eval_documents import LmEvalSource
from pytest_llmeval.sources.lm_eval_documents import task_hashes
from pytest_llmeval.sources.lm_eval_index import find_entry
from pytest_llmeval.sources.lm_eval_index import lm_eval_version

__all__ = ["lm_eval_task", "lm_eval_task_hashes"]


def lm_eval_task(
    name: str,
    *,
    include_path: str | PathLike[str] | None = None,
    num_fewshot: int | None = None,
    subject: str | None = None,
    metrics: Sequence[str] | None = None,
    apply_chat_template: bool = False,
    fewshot_as_multiturn: bool = True,
    system_instruction: str | None = None,
) -> Benchmark:
    """Return a task, group or tag of lm-eval as the benchmark ``lmeval_<name>``.

    ``name`` may be the path of a YAML file. The tasks of a group are the subjects, unless ``subject``
    names a field of the documents. ``metrics``: names such as ``acc_norm``, ``exact_match`` or
    ``exact_match,strict-match``, by default all that are 0 or 1 for a document. The first one is the
    scorer of the test (``lmeval_acc``, ``lmeval_exact_match_strict-match``); the others have results
    of their own. The other arguments are those of lm-eval's command line; ``num_fewshot`` does not
    change a task that is configured with 0 shots.

    Raises ConfigError, with the reason, for a task that cannot be evaluated here, for an unknown
    name with the nearest valid one, and if lm-eval is not installed or has another version than
    0.4.13 or later, before 0.5.
    """
    version = lm_eval_version()
    folder = None if include_path is None else fspath(include_path)
    if num_fewshot is not None:
        check_number(f"lm_eval_task({name!r})", "num_fewshot", num_fewshot, lowest=0)
    if system_instruction is not None and not apply_chat_template:
        raise ConfigError(
            f"lm_eval_task({name!r}): system_instruction needs apply_chat_template=True"
        )
    members = members_of(find_entry(name, folder), folder)
    for task, config in members.configs.items():
        reason = refusal(config)
        if reason is not None:
            owner = "" if len(members.configs) == 1 else f" of {name!r}"
            raise ConfigError(f"lm-eval task {task!r}{owner} cannot be evaluated here: {reason}")
    try:
        has_choices = common_output(members.configs) == "multiple_choice"
        selected = common_metrics(members.configs, metrics)
        decoding = Decoding() if has_choices else common_decoding(members.configs)
    except ConfigError as error:
        raise ConfigError(_with_owner(name, str(error))) from None
    source = LmEvalSource(
        name=members.loaded_name,
        tasks=tuple(members.configs),
        folders=members.folders,
        num_fewshot=num_fewshot,
        subject=subject,
        chat=Chat(fewshot_as_multiturn, system_instruction) if apply_chat_template else None,
    )
    scorers = [register(metric.scorer, metric.metric, metric.filter) for metric in selected]
    protocol = Protocol(
        "lmeval",
        _template(source, has_choices),
        scorer=scorers[0],
        also=tuple(scorers[1:]),
        ask="choices" if has_choices else "text",
        chat=apply_chat_template,
        decoding=decoding,
        choices_only=has_choices,
        origin=_origin(version, members, source),
    )
    return Benchmark(f"lmeval_{safe_id(_short_name(name, members), 80)}", source, (protocol,))


def lm_eval_task_hashes(benchmark: Benchmark) -> dict[str, str]:
    """Return ``task_hashes`` of a benchmark of ``lm_eval_task``, as in the results of lm-eval.

    They are SHA-256 over the documents, first prompts and targets of all documents of a task; under
    a chat template lm-eval's depend on the model and differ. Raises ConfigError for another
    benchmark, and DataError if the documents cannot be loaded.
    """
    if not isinstance(benchmark.source, LmEvalSource):
        raise ConfigError(f"benchmark {benchmark.name!r} is not one of lm_eval_task")
    origin = benchmark.protocols[0].origin
    filters = {
        task: len(config.get("filter_list") or (None,)) for task, config in origin["tasks"].items()
    }
    return task_hashes(benchmark.source, filters)


def _with_owner(name: str, text: str) -> str:
    return text if text.startswith("lm-eval task") else f"lm-eval task {name!r}: {text}"


def _short_name(name: str, members: Members) -> str:
    """Return the name without folders, of a file the name that it has inside."""
    return members.name if Path(name).suffix in (".yaml", ".yml") else name


def _template(source: LmEvalSource, has_choices: bool) -> Template:
    return Template(
        "lm_eval",
        description=_no_description,
        question=_question,
        choices=partial(_choices, source) if has_choices else _no_choices,
        given=partial(_given, source) if has_choices else None,
        prompt=partial(_prompt, source),
    )


def _origin(version: str, members: Members, source: LmEvalSource) -> Mapping[str, Any]:
    """Return lm-eval's version and the configurations of the tasks, without what does not score."""
    chat = source.chat
    return {
        "lm_eval": version,
        "tasks": {
            task: cleaned(config, source.num_fewshot) for task, config in members.configs.items()
        },
        **({"aggregation": members.aggregation} if members.aggregation else {}),
        **(
            {}
            if chat is None
            else {
                "fewshot_as_multiturn": chat.fewshot_as_multiturn,
                "system_instruction": chat.system_instruction,
            }
        ),
    }


def _prompt(source: LmEvalSource, item: Item) -> Prompt:
    return source.rendered(item).prompt


def _choices(source: LmEvalSource, item: Item) -> tuple[str, ...]:
    return source.rendered(item).choices


def _given(source: LmEvalSource, item: Item) -> tuple[str, ...]:
    return source.rendered(item).given


def _question(item: Item) -> str:
    return item.question


def _no_choices(_item: Item) -> tuple[str, ...]:
    return ()


def _no_description(_subject: str) -> str:
    return ""
