"""The files that ``--llm-report`` leaves in the run folder: a registry of formats.

Each format is a function that reads the finished run folder and writes one file into it. What it
needs beyond the core is asked for before the run starts, not found missing at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.runs.run import Run
from pytest_llmeval.spelling import suggestion

Writer = Callable[[Path, Run | None], Path]
"""Writes one file into a finished run folder, given the baseline it was compared with (if any).

``run.json``, ``records.jsonl``, ``metrics.json``, ``gates.json`` and, with a baseline,
``comparison.json`` are there. Returns the file; RunError or OSError where it cannot be written.
"""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: who writes it, the modules it needs, and the extra that brings them.

    ``prompts``: it shows the prompts, so the run has to keep them (``runs/prompts.py``).
    """

    write: Writer
    needs: tuple[str, ...] = ()
    extra: str = ""
    prompts: bool = False


def _html(folder: Path, baseline: Run | None) -> Path:
    from pytest_llmeval.reports.html import write_report

    return write_report(folder, baseline)


def _markdown(folder: Path, baseline: Run | None) -> Path:
    from pytest_llmeval.reports.judged import read_judged
    from pytest_llmeval.reports.judged import used
    from pytest_llmeval.reports.markdown import run_markdown

    file = folder / "report.md"
    run = read_judged(folder)
    file.write_text(run_markdown(run, used=used(run)), encoding="utf-8")
    return file


def _json(folder: Path, baseline: Run | None) -> Path:
    from pytest_llmeval.reports.export import export

    return export(folder, "json")


def _parquet(folder: Path, baseline: Run | None) -> Path:
    from pytest_llmeval.reports.export import export

    return export(folder, "parquet")


FORMATS: Mapping[str, Format] = {
    "html": Format(_html, needs=("jinja2",), extra="report", prompts=True),
    "markdown": Format(_markdown),
    "json": Format(_json),
    "parquet": Format(_parquet, needs=("pyarrow",), extra="hub"),
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
            f"{source}: format {name!r} needs {', '.join(missing)}:"
            f" pip install 'pytest-llmeval[{wanted.extra}]'"
        )


def write_reports(formats: Iterable[str], folder: Path, baseline: Run | None) -> list[Path]:
    """Write every format into the run folder. Raises RunError, in one line, where one cannot be."""
    written = []
    for name in formats:
        try:
            written.append(FORMATS[name].write(folder, baseline))
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"cannot write the {name} report of {folder}: {reason}") from error
    return written
