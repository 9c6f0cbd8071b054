"""Registry of report formats.

Each format is a function that reads a finished run folder and writes one file. Missing dependencies
of a format are reported before the run starts.
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
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Input of a report: a finished run folder, and the run to compare with."""

    folder: Path
    """Contains ``run.json``, ``records.jsonl``, ``metrics.json``, ``gates.json`` and, with a
    baseline, ``comparison.json``."""
    baseline: Run | None = None
    """Run compared with, whose answers are shown."""
    comparison: Mapping[str, Any] | None = None
    """Value of ``RunComparison.as_json`` to use in place of ``comparison.json``."""
    overlap: OverlapReport | None = None
    """Overlap with a corpus to use in place of ``overlap.json``."""


Writer = Callable[[ReportInput, Path], None]
"""Writes one file; raises RunError for a damaged run, OSError if the file cannot be written."""


@dataclass(frozen=True, slots=True)
class Format:
    """Report format."""

    file: str
    """Name of its file in the run folder."""
    write: Writer
    needs: tuple[str, ...] = ()
    """Modules that must be installed."""
    extra: str = ""
    """Extra of this package that installs them."""


def _html(material: ReportInput, out: Path) -> None:
    from pytest_llmeval.reports.html import html_report
    from pytest_llmeval.reports.html import load_sources

    sources = load_sources(
        material.folder, material.baseline, material.comparison, material.overlap
    )
    out.write_text(html_report(sources), encoding="utf-8")


def _markdown(material: ReportInput, out: Path) -> None:
    from pytest_llmeval.reports.markdown import run_markdown
    from pytest_llmeval.runs.judging import run_resource_use

    run = _judged(material)
    out.write_text(run_markdown(run, used=run_resource_use(run)), encoding="utf-8")


def _code_quality(material: ReportInput, out: Path) -> None:
    from pytest_llmeval.reports.ci import code_quality
    from pytest_llmeval.reports.ci import project_path

    run = _judged(material)
    file = project_path(
        Path(run.thresholds_path or run.thresholds or "thresholds.toml"), os.environ
    )
    out.write_text(json.dumps(code_quality(run, file), indent=1) + "\n", encoding="ascii")


def _json(material: ReportInput, out: Path) -> None:
    from pytest_llmeval.reports.export import write_json

    write_json(out, load_run(material.folder), _judged(material))


def _parquet(material: ReportInput, out: Path) -> None:
    from pytest_llmeval.reports.export import write_parquet

    write_parquet(out, load_run(material.folder), _judged(material))


def _judged(material: ReportInput) -> JudgedRun:
    return read_judged_run(material.folder, material.comparison, material.overlap)


FORMATS: Mapping[str, Format] = {
    "html": Format("report.html", _html, needs=("jinja2",), extra="report"),
    "markdown": Format("report.md", _markdown),
    "codequality": Format("gl-code-quality-report.json", _code_quality),
    "json": Format("export.json", _json),
    "parquet": Format("export.parquet", _parquet, needs=("pyarrow",), extra="hub"),
}


def read_formats(text: str | None, source: str = "--llm-report") -> tuple[str, ...]:
    """Parse a comma-separated list of formats; duplicates are removed.

    Raises ConfigError, in one line, for an unknown name and for a format whose extra is not installed.
    """
    names = dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip())
    for name in names:
        if name not in FORMATS:
            raise ConfigError(
                f"{source}: unknown report format {name!r}{suggestion(name, FORMATS)}"
            )
        check_installed(name, source)
    return tuple(names)


def check_installed(name: str, source: str) -> None:
    """Raise ConfigError unless all modules that a format needs are installed."""
    report_format = FORMATS[name]
    missing = [module for module in report_format.needs if find_spec(module) is None]
    if missing:
        hint = install_hint(report_format.extra)
        raise ConfigError(f"{source}: format {name!r} needs {', '.join(missing)}: {hint}")


def write_report(name: str, material: ReportInput, out: Path | None = None) -> Path:
    """Write one format and return its file: ``out``, or by default a file in the run folder.

    A file in the run folder is replaced atomically. Raises RunError, in one line, for a damaged run
    and if the file cannot be written.
    """
    report_format = FORMATS[name]
    file = material.folder / report_format.file if out is None else out
    try:
        if out is not None:
            report_format.write(material, out)
            return file
        temporary = file.with_name(f".{file.name}.tmp")
        report_format.write(material, temporary)
        os.replace(temporary, file)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"cannot write the {name} report {file}: {reason}") from error
    return file
