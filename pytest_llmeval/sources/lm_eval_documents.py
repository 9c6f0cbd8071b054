"""Documents of lm-evaluation-harness's tasks, with the prompts that lm-eval itself renders.

The documents are read, processed and rendered by lm-eval's own task objects, so that prompts and
choices are the same byte for byte. Random shots come from one sequence of random numbers per task:
all prompts are rendered in the order of the documents, once per process.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Prompt
from pytest_llmeval.sources.hub import hub_access
from pytest_llmeval.sources.item_ids import row_id

FEWSHOT_SEED = 1234
"""lm-eval's default seed of random shots."""


@dataclass(frozen=True)
class Chat:
    """The chat options of lm-eval's command line, under ``apply_chat_template``."""

    fewshot_as_multiturn: bool = True
    system_instruction: str | None = None


@dataclass(frozen=True)
class LmEvalSource:
    """The source of a benchmark: the documents of one or several tasks of lm-eval."""

    #: Task, group or tag, or the path of a YAML file.
    name: str
    #: Names of the tasks.
    tasks: tuple[str, ...]
    #: Folders that have the YAML files of all of them.
    folders: tuple[str, ...]
    num_fewshot: int | None = None
    #: The field of the documents that is the subject; by default the name of the task.
    subject: str | None = None
    #: None: the prompt is one text.
    chat: Chat | None = None

    def __call__(self, data_dir: Any = None) -> Dataset:
        """Return the items; ``data_dir`` is not used, because lm-eval's files name their data."""
        return _load(self).dataset

    def rendered(self, item: Item) -> RenderedItem:
        """Return an item's prompt and choices as lm-eval rendered them."""
        return _load(self).rendered[item.id]


class RenderedItem(NamedTuple):
    """A prompt with its choices: the same prompt for all, unless ``given`` has a text for each."""

    prompt: Prompt
    choices: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    #: SHA-256 of the first context, as in lm-eval's logs.
    prompt_sha256: str = ""


class _Loaded(NamedTuple):
    dataset: Dataset
    rendered: Mapping[str, RenderedItem]


#: Task → the part of its configuration that scores a response.
_scoring: dict[str, str] = {}

#: Task and SHA-256 of a document → lm-eval's task object and the document.
_documents: dict[tuple[str, str], tuple[Any, Any]] = {}


def document_of(item: Item) -> tuple[Any, Any]:
    """Return lm-eval's task object and document of an item whose source was called before."""
    return _documents[item.fields["task"], item.fields["doc_sha256"]]


@cache
def _load(source: LmEvalSource) -> _Loaded:
    tasks = _task_objects(source)
    items: list[Item] = []
    rendered: dict[str, RenderedItem] = {}
    for name in source.tasks:
        task = tasks[name]
        _prepare(task, source.num_fewshot)
        with _one_line(f"lm-eval task {name!r}: its documents cannot be read"):
            documents = list(task.eval_docs)
        _check_scoring(name, task)
        for number, document in enumerate(documents):
            with _one_line(f"lm-eval task {name!r}, document {number}"):
                item, prompt = _render(source, name, number, task, document)
            items.append(item)
            rendered[item.id] = prompt
            _documents[name, item.fields["doc_sha256"]] = (task, document)
    return _Loaded(Dataset(tuple(items)), rendered)


def _task_objects(source: LmEvalSource) -> dict[str, Any]:
    """Return the task objects by name; this runs the code of the tasks and loads their data."""
    manager: Any = importlib.import_module("lm_eval.tasks").TaskManager  # an extra, 1 s
    _keep_compiled_templates()
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it warns about every default value
    try:
        with _one_line(f"lm-eval task {source.name!r} cannot be loaded"), hub_access() as reason:
            try:
                tasks = manager(include_path=list(source.folders), include_defaults=False).load(
                    [source.name]
                )["tasks"]
            except Exception as error:
                raise DataError(
                    f"lm-eval task {source.name!r} cannot be loaded"
                    f" ({reason + '; ' if reason else ''}{_first_words(error)})"
                ) from error
    finally:
        logger.setLevel(level)
    missing = [name for name in source.tasks if name not in tasks]
    if missing or len(tasks) != len(source.tasks):
        raise DataError(
            f"lm-eval group {source.name!r}: {len(source.tasks)} tasks were expected from its files,"
            f" and lm-eval loads {len(tasks)}"
        )
    return dict(tasks)


def _prepare(task: Any, num_fewshot: int | None) -> None:
    """Set the number of shots and their seed as lm-eval's ``simple_evaluate`` does."""
    configured = task.get_config("num_fewshot")
    if configured is None or (num_fewshot is not None and configured != 0):
        task.set_config(key="num_fewshot", value=num_fewshot or 0)
    task.set_fewshot_seed(seed=FEWSHOT_SEED)


def _check_scoring(name: str, task: Any) -> None:
    """Raise ConfigError if this process loaded another task of this name, which scores differently."""
    keys = ("output_type", "metric_list", "filter_list")
    scoring = repr([getattr(task.config, key, None) for key in keys])
    if _scoring.setdefault(name, scoring) != scoring:
        raise ConfigError(
            f"two different lm-eval tasks are called {name!r} in this session: evaluate them in"
            " separate sessions, or rename one"
        )


def _render(
    source: LmEvalSource, name: str, number: int, task: Any, document: Any
) -> tuple[Item, RenderedItem]:
    """Return a document as an item, and its prompt."""
    chat = source.chat
    # lm-eval puts what the template returns into the request: the messages themselves, as JSON.
    options: dict[str, Any] = {
        "apply_chat_template": chat is not None,
        "chat_template": None if chat is None else _as_json,
    }
    context = task.fewshot_context(
        doc=document,
        num_fewshot=task.config.num_fewshot,
        system_instruction=chat.system_instruction if chat else None,
        fewshot_as_multiturn=chat is not None and chat.fewshot_as_multiturn,
        gen_prefix=task.doc_to_prefix(document),
        **options,
    )
    instances = task.construct_requests(
        doc=document, ctx=context, metadata=(name, number, 1), **options
    )
    has_choices = task.OUTPUT_TYPE == "multiple_choice"
    target = task.doc_to_target(document)
    choices: tuple[str, ...] = ()
    gold: int | str = str(target[0] if isinstance(target, list) and target else target)
    if has_choices:
        choices = tuple(task.doc_to_choice(document))
        gold = _gold_index(task.doc_to_text(document) if task.multiple_input else target, choices)
        prompt = _choice_prompt(instances, choices, str(target), chat, bool(task.multiple_input))
    else:
        prompt = RenderedItem(_prompt(instances.args[0], chat))
    digest = hashlib.sha256(
        str(instances[0].args[0] if has_choices else instances.args[0]).encode()
    )
    question = task.doc_to_text(document)
    item = Item(
        id=row_id(name, number),
        subject=_subject(source.subject, name, document),
        question=question if isinstance(question, str) else prompt.prompt.question,
        gold=gold,
        options=choices,
        fields={
            "task": name,
            "document": str(number),
            "doc_sha256": _sha256(_document_json(document)),
            "target_sha256": _sha256(str(target)),
        },
    )
    return item, prompt._replace(prompt_sha256=digest.hexdigest())


def _choice_prompt(
    instances: Sequence[Any],
    choices: tuple[str, ...],
    target: str,
    chat: Chat | None,
    multiple_input: bool,
) -> RenderedItem:
    contexts = [instance.args[0] for instance in instances]
    continuations = [instance.args[1] for instance in instances]
    texts = (target,) * len(choices) if multiple_input else choices
    delimiter = continuations[0][: len(continuations[0]) - len(texts[0])]
    if [delimiter + text for text in texts] != continuations:
        raise DataError("its requests are not its choices after one delimiter")
    if not multiple_input:
        return RenderedItem(_prompt(contexts[0], chat, delimiter), choices)
    if chat is not None:
        raise DataError("a context for every choice has no chat form here")
    beginning = os.path.commonprefix(contexts)  # noqa: RUF071
    given = tuple(context[len(beginning) :] for context in contexts)
    return RenderedItem(_prompt(beginning, None, delimiter), texts, given)


def _prompt(context: str, chat: Chat | None, delimiter: str = "") -> Prompt:
    """Return a context of lm-eval as a prompt; in a chat it is a list of messages as JSON."""
    if chat is None:
        return Prompt("", (), context, delimiter=delimiter)
    messages = json.loads(context)
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    prefix = messages.pop()["content"] if messages[-1]["role"] == "assistant" else ""
    roles = [message["role"] for message in messages]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
        raise DataError(f"its messages are in an order that cannot be sent: {', '.join(roles)}")
    texts = [message["content"] for message in messages]
    return Prompt(
        description=system,
        shots=tuple(zip(texts[:-1:2], texts[1::2], strict=True)),
        question=texts[-1],
        delimiter=delimiter,
        prefix=prefix,
        keep_description=True,
    )


def _as_json(messages: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
    return json.dumps(messages)


def _gold_index(target: Any, choices: tuple[str, ...]) -> int:
    """Return the index of the right choice, of several right ones the first; as lm-eval finds it."""
    first = target[0] if isinstance(target, list) and target else target
    if isinstance(first, str):
        first = choices.index(first) if first in choices else -1
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first < len(choices):
        raise DataError(f"the target {target!r:.60} is none of its {len(choices)} choices")
    return first


def _subject(field: str | None, name: str, document: Any) -> str:
    if field is None:
        return name
    if field not in document:
        raise DataError(f"no field {field!r}, which is to be the subject")
    return str(document[field])


def _document_json(document: Any) -> str:
    """Return a document as lm-eval hashes it."""
    default = importlib.import_module("lm_eval.utils").handle_non_serializable
    return json.dumps(document, indent=2, default=default, ensure_ascii=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def task_hashes(source: LmEvalSource, filters: Mapping[str, int]) -> dict[str, str]:
    """Return ``task_hashes`` of lm-eval's results, for all documents of every task.

    ``filters``: task → number of its filters, since lm-eval hashes a document once for each. Under a
    chat template lm-eval hashes prompts that the model's template rendered; these differ.
    """
    loaded = _load(source)
    hashes: dict[str, list[str]] = {name: [] for name in source.tasks}
    for item in loaded.dataset.items:
        prompt = loaded.rendered[item.id].prompt_sha256
        parts = (item.fields["doc_sha256"], prompt, item.fields["target_sha256"])
        hashes[item.fields["task"]].append("".join(parts))
    return {name: _sha256("".join(parts * filters[name])) for name, parts in hashes.items()}


def _keep_compiled_templates() -> None:
    """Have lm-eval compile a template once instead of for every document, which takes 1 ms each."""
    environment = importlib.import_module("lm_eval.utils").env
    if not hasattr(environment.from_string, "cache_info"):
        environment.from_string = cache(environment.from_string)


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Turn an exception of lm-eval, of a task's code or of its data into one line."""
    try:
        yield
    except DataError as error:
        raise error if str(error).startswith("lm-eval") else DataError(f"{what}: {error}") from None
    except Exception as error:
        raise DataError(f"{what}: {_first_words(error)}") from error


def _first_words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
