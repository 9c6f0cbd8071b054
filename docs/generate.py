"""Generate the reference from the code when the site is built (mkdocs-gen-files).

python docs/generate.py FOLDER    writes it to a folder instead
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import tomllib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval import catalog
from pytest_llmeval import cli
from pytest_llmeval import metrics
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.gates import contamination
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.gates import thresholds
from pytest_llmeval.plugin import options
from pytest_llmeval.reports import export
from pytest_llmeval.scorers import SCORERS


def pages() -> dict[str, str]:
    """Path below ``reference`` → Markdown."""
    return {
        "options.md": _options(),
        "commands.md": _commands(),
        "thresholds.md": _thresholds(),
        "metrics.md": _metrics(),
        "catalog.md": _catalog(),
        "benchmarks.md": _benchmarks(),
        "scorers.md": _scorers(),
        "data.md": _data(),
        "api.md": _api(),
    }


# Options and commands --------------------------------------------------------------------


def _options() -> str:
    rows = []
    for option in options._OPTIONS:
        kind = option.metavar
        if "|" in option.kind:
            kind = f"{{{option.kind.replace('|', ',')}}}"
        value = f" {kind}" if option.kind != "flag" else ""
        default = "" if option.default in (None, False, []) else str(option.default)
        ini = f"llm_{option.flag.replace('-', '_')}"
        rows.append((f"`--llm-{option.flag}{value}`", f"`{ini}`", default, option.help))
    trust = f"`--{options.TRUST}`"
    rows.append((trust, "none", "", "let `--llm-sandbox none` run code on this machine"))
    return (
        "# Options of pytest\n\n"
        "Each option can also be set in `pytest.ini` or `[tool.pytest.ini_options]`, under the name in the"
        " second column. The command line takes precedence. Paths on the command line are relative to the"
        " working folder, paths in an ini file to pytest's rootdir.\n\n"
        + _table(("option", "ini", "default", "meaning"), rows)
    )


def _commands() -> str:
    blocks = ["# The command `llmeval`\n\nCommands for stored runs. None of them needs a model."]
    for name, parser in _subcommands(cli.make_parser()):
        blocks.append(f"## {name}\n\n{_code(parser.format_help())}")
    return "\n\n".join(blocks) + "\n"


def _subcommands(parser: argparse.ArgumentParser) -> Iterable[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                deeper = list(_subcommands(inner))
                nested = [(f"{name} {rest}", subparser) for rest, subparser in deeper]
                yield from nested or [(name, inner)]


# thresholds.toml -------------------------------------------------------------------------

_TABLES = (
    ("[benchmarks.NAME]", thresholds.BenchmarkGates),
    ("[benchmarks.NAME.scorers.SCORER]", thresholds.ScorerGates),
    (
        "[benchmarks.NAME.every_subject] and [benchmarks.NAME.subjects.SUBJECT]",
        thresholds.SubjectGates,
    ),
    ("[benchmarks.NAME.regression]", thresholds.RegressionGates),
    ("[benchmarks.NAME.clean]", thresholds.CleanGates),
    ("[benchmarks.NAME.contamination]", contamination.ContaminationGates),
    ("option_order = { … } and item_order = { … }", contamination.OrderGate),
    ("[benchmarks.NAME.twin]", contamination.TwinGates),
)
_MODEL = '[models."SPEC".benchmarks.NAME]'


def _thresholds() -> str:
    blocks = [
        "# thresholds.toml",
        "The file begins with `version = 1`. An unknown key, a metric that the benchmark does not have, or a"
        " bound outside its range is an error before any model is loaded; the message has the location and"
        " the nearest valid name.",
        "## A bound",
        _table(("key", "meaning"), [(f"`{key}`", text) for key, text in _BOUND.items()]),
        "A bare number is short for `min`, or for `max` where smaller values are better.",
    ]
    for place, model in _TABLES:
        blocks += [f"## `{place}`", _prose(inspect.getdoc(model) or "")]
        rows = []
        for name in model.model_fields:
            if model is thresholds.ScorerGates and name in ("every_subject", "subjects"):
                rows.append((f"`{name}`", "table", "as for the benchmark"))
                continue
            rows.append((f"`{name}`", *_field(place, model, name)))
        if issubclass(model, thresholds._MetricGates):
            rows.append(('`"pass@K"`, `"pass^K"`', *_probe(place, model, '"pass@2"')))
        blocks.append(_table(("key", "value", "range"), rows))
    blocks += [
        f"## `{_MODEL}`",
        "The same tables for one model. Their keys override those of the benchmark one by one; a bound is"
        " replaced as a whole.",
    ]
    return "\n\n".join(blocks) + "\n"


_BOUND = {
    "min": "smallest value that passes",
    "max": "largest value that passes",
    "confidence": "the whole interval of this level must be inside the bound; the gate fails if all of it is"
    " outside, and is undecided otherwise",
    "chance": "true: the interval (95 % without `confidence`) must contain the chance level",
}


def _field(place: str, model: type[Any], name: str) -> tuple[str, str]:
    kind = model.model_fields[name].annotation
    if kind in (bool, bool | None):
        meaning = "true: the build fails if the run does not have it" if name == "required" else ""
        return "true or false", meaning
    if name in ("baseline", "against"):
        return "text", "name in `baselines/`, run folder or baseline file"
    if name == "of":
        return "text", "name of the rewritten benchmark"
    if name in contamination.ORDER_TESTS:
        return "order test; a number is its `alpha`", "between 0 and 0.5"
    if name in ("max_errors",):
        return "whole number", "from 0"
    if name == "hybrids":
        return "table", 'hybrid = bound, 0 to 1: `"0.7*matched+0.3*letter" = 0.4`'
    if name in (
        "every_subject",
        "subjects",
        "regression",
        "clean",
        "scorers",
        "contamination",
        "twin",
    ):
        return "table", "see below"
    return _probe(place, model, name)


def _probe(place: str, model: type[Any], name: str) -> tuple[str, str]:
    """Value and range of a key, determined by parsing trial values."""
    table = {
        thresholds.SubjectGates: "benchmarks.b.every_subject",
        thresholds.RegressionGates: "benchmarks.b.regression",
        thresholds.ScorerGates: "benchmarks.b.scorers.s",
        thresholds.BenchmarkGates: "benchmarks.b",
        thresholds.CleanGates: "benchmarks.b.clean",
        contamination.ContaminationGates: "benchmarks.b.contamination",
        contamination.OrderGate: "benchmarks.b.contamination.option_order",
        contamination.TwinGates: "benchmarks.b.twin",
    }[model]
    needed = {
        thresholds.RegressionGates: "max_drop = 0.5\n" if name == "alpha" else "",
        contamination.TwinGates: 'of = "c"\n',
    }

    def takes(value: str) -> bool:
        other = needed.get(model, "")
        try:
            parse_thresholds(f"version = 1\n[{table}]\n{other}{name} = {value}\n")
        except ConfigError:
            return False
        return True

    edges = [edge for edge in ("-2", "-1", "0", "0.4", "0.5", "1", "2") if takes(edge)]
    if edges[0] == "0.4":
        reach = f"between 0 and {'0.5' if edges == ['0.4'] else '1'}"
    else:
        reach = f"{edges[0]} to {edges[-1]}".replace("to 0.4", "below 0.5")
    if not takes("{ min = 0.5 }"):
        return "number", reach
    parsed = parse_thresholds(f"version = 1\n[{table}]\n{name} = 0.5\n").benchmarks["b"]
    for step in table.split(".")[2:]:
        parsed = parsed[step] if isinstance(parsed, Mapping) else getattr(parsed, step)
    short = getattr(parsed, name.strip('"'))
    side = "min" if short.min is not None else "max"
    chance = ", chance" if takes("{ chance = true }") else ""
    return f"bound; a number is its `{side}`{chance}", reach


# Metrics, benchmarks, scorers ------------------------------------------------------------


def _metrics() -> str:
    blocks = [
        "# Metrics",
        "Pure functions of `pytest_llmeval.metrics`. Proportions are in [0, 1], undefined values are `None`,"
        " and invalid arguments raise `ValueError`. C(n, k) is the binomial coefficient.",
    ]
    by_module: dict[str, list[str]] = {}
    for name in metrics.__all__:
        if inspect.isfunction(value := getattr(metrics, name)):
            by_module.setdefault(value.__module__, []).append(name)
    for module, names in by_module.items():
        title = (inspect.getdoc(sys.modules[module]) or module).splitlines()[0].rstrip(".")
        blocks.append(f"## {_prose(title)}")
        for name in names:
            value = getattr(metrics, name)
            doc = inspect.getdoc(value) or ""
            blocks.append(f"### {name}\n\n{_code(_signature(value), 'python')}\n\n{_prose(doc)}")
    return "\n\n".join(blocks) + "\n"


def _signature(function: Any) -> str:
    """Return the signature, one parameter a line where it is long."""
    text = f"{function.__name__}{inspect.signature(function)}".replace("'", "")
    if len(text) <= 88:
        return text
    head, _, tail = text.partition("(")
    inside, arrow, result = tail.rpartition(") -> ")
    depth, lines = 0, [""]
    for char in inside:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            lines.append("")
        else:
            lines[-1] += char
    body = "".join(f"    {line.strip()},\n" for line in lines)
    return f"{head}(\n{body}{arrow}{result}"


class _Placeholders(dict[str, str]):
    """Any field of a template, with its own name as the value."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def _benchmarks() -> str:
    blocks = [
        "# Benchmarks and their protocols",
        "The first protocol is the default; `--llm-protocol NAME` selects another. Prompts are printed as they"
        " are sent, with at most one example and with placeholders for the data."
        " `--llm-dry-run` prints a real one. Sizes, licences and sources are in a"
        " [table of their own](catalog.md).",
    ]
    for name in catalog.NAMES:
        function = getattr(catalog, name)
        benchmark = function()
        blocks.append(
            f"## {name}\n\n{_prose(inspect.getdoc(sys.modules[function.__module__]) or '')}"
        )
        blocks += [_protocol(protocol) for protocol in benchmark.protocols]
    return "\n\n".join(blocks) + "\n"


def _protocol(protocol: Protocol) -> str:
    scorers = ", ".join(f"`{scorer}`" for scorer in (protocol.scorer, *protocol.also))
    requested = "log-likelihoods of the choices" if protocol.ask == "choices" else "text"
    facts = [("requests", requested), ("scorers", scorers), ("shots", str(protocol.shots))]
    if protocol.ask == "text":
        decoding = protocol.decoding
        stop = ", ".join(f"`{json.dumps(text, ensure_ascii=False)}`" for text in decoding.stop)
        facts += [
            ("at most", f"{decoding.max_tokens} tokens"),
            ("temperature", f"{decoding.temperature:g}"),
            ("stops at", stop or "nothing"),
        ]
    shown, choices = _prompt(protocol)
    facts += [("choices", choices)] if choices else []
    return f"### {protocol.name}\n\n{_list(facts)}\n\n{_code(shown)}"


def _prompt(protocol: Protocol) -> tuple[str, str]:
    options_of = tuple(f"{{option {letter}}}" for letter in "ABCD")
    fields = {"language": "en", "padding": "0"}
    item = Item("item-0000", "some_subject", "{question}", 1, options_of, _Placeholders(fields))
    if not protocol.template.choices(item):
        item = replace(item, gold="{gold}")
    answers = {"answer": "{answer}", "cot": "{reasoning}"}
    about = _Placeholders({**fields, **answers})
    shot = replace(item, id="shot", question="{question of an example}", fields=about)
    shortened = replace(protocol, shots=min(1, protocol.shots), draw="first")
    text = shortened.render(item, [shot]).text
    choices = ", ".join(f"`{choice}`" for choice in shortened.template.choices(item))
    return text, choices if protocol.ask == "choices" else ""


def _scorers() -> str:
    blocks = [
        "# Scorers",
        "A scorer extracts the answer from a response and compares it with the gold answer. Its version is part"
        " of the fingerprint of every protocol that uses it, and increases whenever a change can alter a"
        " score.",
    ]
    for name, scorer in SCORERS.items():
        doc = inspect.getdoc(scorer.jobs.job if scorer.jobs else scorer.score) or ""
        about = f"version {scorer.version}"
        about += f"; needs the extra `{scorer.needs[1]}`" if scorer.needs else ""
        about += "; runs code in the [sandbox](../sandbox.md)" if scorer.jobs else ""
        blocks.append(f"## {name}\n\n{about}\n\n{_prose(doc)}")
    return "\n\n".join(blocks) + "\n"


# Catalog and Python API ------------------------------------------------------------------

FACTS = Path(__file__).with_name("benchmarks.toml")


def _catalog() -> str:
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    rows = []
    for name in catalog.NAMES:
        fact = facts[name]
        function = getattr(catalog, name)
        subjects = f" in {fact['subjects']:,} subjects" if fact["subjects"] > 1 else ""
        protocols = [protocol.name for protocol in function().protocols]
        rows.append(
            (
                f"[`{name}`](benchmarks.md#{name}), {fact['paper']}",
                f"{fact['items']:,}{subjects}",
                fact["language"],
                ", ".join(f"`{name}`" for name in protocols if not name.endswith("_greedy")),
                fact.get("source") or _hub_source(sys.modules[function.__module__]),
                fact["licence"],
            )
        )
    return (
        "# Benchmarks: sizes, licences, sources\n\n"
        "Items are those that are scored. The first protocol is the default; `matched` and `lettered` have a"
        " variant `_greedy` with temperature 0. *Source* is the data set of the Hugging Face hub with the"
        " commit that is pinned; `--llm-data DIR` reads a local copy instead, in any layout of its publishers."
        " The data is not part of the package, except for `starter` and `nonsenseqa`: check the licence before"
        " you redistribute it.\n\n"
        + _table(("benchmark", "items", "language", "protocols", "source", "licence"), rows)
        + "\n"
    )


def _hub_source(module: Any) -> str:
    """Return the data set on the hub with the pinned commit; "in the package" where there is none."""
    repository = getattr(module, "REPO", None)
    if repository is None:
        return "in the package"
    return f"[{repository}](https://huggingface.co/datasets/{repository}), `{module.REVISION[:12]}`"


API = {
    "pytest_llmeval": "The words of a benchmark, for tests and `conftest.py`.",
    "pytest_llmeval.catalog": "Functions that return the benchmarks.",
    "pytest_llmeval.sources": "Rows of files or of the hub as items.",
    "pytest_llmeval.prompts": "Published prompt formats as templates.",
    "pytest_llmeval.models": "Models by their specification, and the base class of backends.",
    "pytest_llmeval.models.ray": "Custom models that run as replicas.",
    "pytest_llmeval.testing": "A model with scripted answers.",
    "pytest_llmeval.scorers": "Answers in texts, and the registry of scorers.",
    "pytest_llmeval.metrics": "Metrics and intervals: pure functions.",
    "pytest_llmeval.sandbox": "Running untrusted programs.",
    "pytest_llmeval.gates": "`thresholds.toml` as gates and verdicts.",
    "pytest_llmeval.runs": "Stored runs: load, compare, judge.",
}
"""Public modules and their content."""


def _api() -> str:
    blocks = [
        "# Python API",
        "Public modules. Names that are not on this page may change in any release."
        " The fixtures of a test are described in the [tutorial](../tutorial.md) and in"
        " [custom scorers](../howto/own-scorer.md).",
    ]
    for module_name, content in API.items():
        module = importlib.import_module(module_name)
        values = {name: getattr(module, name) for name in module.__all__}
        described = {
            name: value
            for name, value in values.items()
            if inspect.isclass(value) or inspect.isfunction(value)
        }
        others = [name for name in values if name not in described]
        blocks.append(f"## `{module_name}`\n\n{content}")
        if others:
            names = ", ".join(f"`{name}`" for name in others)
            blocks.append(f"Constants and type aliases: {names}.")
        for value in described.values():
            blocks.append(f"::: {value.__module__}.{value.__qualname__}")
    return "\n\n".join(blocks) + "\n"


# Data ------------------------------------------------------------------------------------


def _data() -> str:
    rows = [(f"`{name}`", f"`{kind}`", meaning) for name, kind, meaning in export.COLUMNS]
    return "\n\n".join(
        [
            "# Exports",
            f"Schema `{export.SCHEMA}`, version {export.VERSION}. The version increases when a field is removed"
            " or changes its meaning, not when a field is added.",
            _prose(inspect.getdoc(export.as_document) or ""),
            "Every answer has these fields: they are the columns of the parquet table, and the keys of the objects"
            " in `answers` of the JSON document. The rest of the document is in the table's metadata under"
            " the key `llmeval`.",
            _table(("field", "type", "meaning"), rows),
        ]
    )


# Markdown --------------------------------------------------------------------------------


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _list(facts: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def _code(text: str, language: str = "text") -> str:
    return f"~~~~{language}\n{text.rstrip()}\n~~~~"


def _prose(doc: str) -> str:
    """Docstring as Markdown paragraphs: double backticks are code, nothing else is markup."""
    for mark in "*<_^[":
        doc = doc.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    parts = doc.split("``")
    plain = [part if n % 2 == 0 else f"`{_bare(part)}`" for n, part in enumerate(parts)]
    return "".join(plain)


def _bare(text: str) -> str:
    for mark in "*_^[":
        text = text.replace(f"\\{mark}", mark)
    return text.replace("&lt;", "<")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
elif "mkdocs_gen_files" in sys.modules:
    import mkdocs_gen_files

    for name, text in pages().items():
        with mkdocs_gen_files.open(f"reference/{name}", "w") as page:
            page.write(text)
