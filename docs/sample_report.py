"""Generate the sample report when the site is built (mkdocs-gen-files).

The answers that the demo model gave to the packaged benchmark are recorded in
``sample/demo.jsonl.gz``. They are scored and judged by the code of this version, under the
repository's ``thresholds.toml``, so that the report shows what this version writes.

python docs/sample_report.py FILE    writes the report to a file instead
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
ANSWERS = Path("docs", "sample", "demo.jsonl.gz")  # from the repository


def sample_report() -> str:
    """HTML report of the recorded answers; raises CalledProcessError if a gate fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["benchmarks/test_starter.py", "--llm-model", f"replay:{ANSWERS.as_posix()}"]
        command += ["--llm-runs", folder, "--llm-report", "html"]
        # In a job of GitHub Actions the run would write the job's summary.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")
        }
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=sys.stderr)
        (report,) = Path(folder).glob("*/report.html")
        return report.read_text(encoding="utf-8")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(sample_report(), encoding="utf-8")
elif "mkdocs_gen_files" in sys.modules:
    import mkdocs_gen_files

    with mkdocs_gen_files.open("sample/report.html", "w") as page:
        page.write(sample_report())
