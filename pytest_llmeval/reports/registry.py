"""The files that a run can be told in: a registry of formats.

Each format is a function that reads a finished run folder and writes one file. What it needs beyond
the core is asked for before the run starts, not found missing at its end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import read_judged
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run


@dataclass(frozen=True, slots=True)
class Material:
    """What a report is written of: a finished run folder, and what it is compared with.

    ``run.json``, ``records.jsonl``, ``metrics.json``, ``gates.json`` and, with a baseline,
    ``comparison.json`` are in the folder. ``comparison``, as ``RunComparison.as_json`` gives it, stands
    in for the latter; ``baseline`` is the run it is with, whose answers are shown.
    """

    folder: Path
    baseline: Run | None = None
    comparison: Mapping[str, Any] | None = None


Writer = Callable[[Material, Path], None]
"""Writes one file. Raises RunError for a damaged run, OSError where the file cannot be written."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its file in the run folder, who writes it, and what that takes.

    ``needs``: modules, which the ``extra`` brings.
    """

    file: str
    write: Writer
    needs: tuple[str, ...] = ()
    extra: str = ""


def _html(material: Material, out: Path) -> None:
    from pytest_llmeval.reports.html import gather
    from pytest_llmeval.reports.html import html_report

    sources = gather(material.folder, material.baseline, material.comparison)
    out.write_text(html_report(sources), encoding="utf-8")


def _markdown(material: Material, out: Path) -> None:
    from pytest_llmeval.reports.markdown import run_markdown
    from pytest_llmeval.runs.judging import used

    run = _judged(material)
    out.write_text(run_markdown(run, used=used(run)), encoding="utf-8")


def _code_quality(material: Material, out: Path) -> None:
    from pytest_llmeval.reports.ci import code_quality
    from pytest_llmeval.reports.ci import in_project

    run = _judged(material)
    file = in_project(Path(run.thresholds_path or run.thresholds or "thresholds.toml"), os.environ)
    out.write_text(json.dumps(code_quality(run, file), indent=1) + "\n", encoding="ascii")


def _json(material: Material, out: Path) -> None:
    from pytest_llmeval.reports.export import write_json

    write_json(out, load_run(material.folder), _judged(material))


def _parquet(material: Material, out: Path) -> None:
    from pytest_llmeval.reports.export import write_parquet

    write_parquet(out, load_run(material.folder), _judged(material))


def _judged(material: Material) -> JudgedRun:
    return read_judged(material.folder, material.comparison)


FORMATS: Mapping[str, Format] = {
    "html": Format("report.html", _html, needs=("jinja2",), extra="report"),
    "markdown": Format("report.md", _markdown),
    "codequality": Format("gl-code-quality-report.json", _code_quality),
    "json": Format("export.json", _json),
    "parquet": Format("export.parquet", _parquet, needs=("pyarrow",), extra="hub"),
}


def read_formats(text: str | None, source: str = "--llm-report") -> tuple[str, ...]:
    """The formats of a comma-separated list, each once, in its order.

    Raises ConfigError, in one line, for an unknown name, and for one whose extra is not installed.
    """
    names = dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        if name not in FORMATS:
            raise ConfigError(f"{source}: no report format {name!r}{suggestion(name, FORMATS)}")
        require(name, source)
    return tuple(names)


def require(name: str, source: str) -> None:
    """Raise ConfigError unless all that a format needs is installed."""
    wanted = FORMATS[name]
    missing = [module for module in wanted.needs if find_spec(module) is None]
    if missing:
        raise ConfigError(
            f"{source}: format {name!r} needs {', '.join(missing)}: {install_hint(wanted.extra)}"
        )


def write(name: str, material: Material, out: Path | None = None) -> Path:
    """Write one format, into the run folder and there in one step unless told where; the file.

    Raises RunError, in one line, for a damaged run and where the file cannot be written.
    """
    wanted = FORMATS[name]
    file = material.folder / wanted.file if out is None else out
    try:
        if out is not None:
            wanted.write(material, out)
            return file
        temporary = file.with_name(f".{file.name}.tmp")
        wanted.write(material, temporary)
        os.replace(temporary, file)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"cannot write the {name} report {file}: {reason}") from error
    return file
