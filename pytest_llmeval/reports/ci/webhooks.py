"""``--llm-notify``: the verdict of a run, told to a command or posted to an address.

Telling is a courtesy: whatever goes wrong with it becomes a sentence, never another verdict.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from dataclasses import asdict
from typing import Any

from pytest_llmeval.gates import STATES
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import describe
from pytest_llmeval.reports.formatting import count
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.wording import failed_items_words
from pytest_llmeval.runs.judged import JudgedRun

SCHEMA = "pytest-llmeval/notification"
VERSION = 2

TIMEOUT = 30.0
"""Seconds that a command or an address is given."""

_RESULT = (
    *("model", "benchmark", "scorer", "n_total", "answered", "correct", "unparsed", "errors"),
    *("complete", "accuracy", "wilson95", "macro_accuracy", "normalized_gain"),
)


def payload(run: JudgedRun, link: str | None = None) -> dict[str, Any]:
    """What is told, as plain JSON values; ``VERSION`` is raised when a field goes or changes.

    ``text`` says the same in one line, which is the field that chat services show.
    """
    counts = count_states(run.verdicts)
    failed = [_gate(verdict) for verdict in run.failed]
    undecided = [_gate(verdict) for verdict in run.undecided]
    worse = [asdict(one) for one in run.regressed()]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "text": _text(run),
        "verdict": run.verdict,
        "run": str(run.path),
        "link": link,
        "status": run.manifest.get("status"),
        "started": run.manifest.get("started"),
        "finished": run.manifest.get("finished"),
        "models": run.models,
        "git": run.manifest.get("git"),
        "gates": {state.replace(" ", "_"): counts.get(state, 0) for state in STATES},
        "items_failed": run.items_failed,
        "failed_gates": failed,
        "undecided_gates": undecided,
        "baseline": run.comparison and run.comparison["baseline"],
        "regressed_subjects": worse,
        "results": [{name: result[name] for name in _RESULT} for result in run.results],
    }


def notify(target: str, value: dict[str, Any], timeout: float = TIMEOUT) -> str | None:
    """Tell ``target``; None when it was told, otherwise why not, in one line.

    An address beginning with ``http://`` or ``https://`` is posted to; anything else is a command,
    split as a shell would split it, that reads JSON from standard input. No shell runs it.
    """
    body = json.dumps(value, allow_nan=False).encode("ascii")
    if target.lower().startswith(("http://", "https://")):
        problem = _post(target, body, timeout)
    else:
        problem = _run(target, body, timeout)
    return None if problem is None else f"--llm-notify failed: {cut(one_line(problem), 300, '')}"


def _text(run: JudgedRun) -> str:
    names = ", ".join(run.models)
    text = f"llmeval {run.verdict}: {names}"
    for state, gates in (
        ("failed", run.failed),
        ("undecided", run.undecided),
        ("warned", run.warned),
    ):
        if gates:
            text += f"; {count(len(gates), 'gate')} {state}, first: {describe(gates[0])}"
    if worse := run.regressed():
        text += f"; {count(len(worse), 'subject')} worse, most: {worse[0].subject} ({worse[0].drop:+.4f})"
    if run.items_failed:
        text += f"; {failed_items_words(run.items_failed)}"
    if run.errors:
        text += f"; {count(run.errors, 'answer')} ended in errors"
    return one_line(text)


def _gate(verdict: Verdict) -> dict[str, Any]:
    kept = ("id", "model", "benchmark", "scorer", "subject", "metric", "bound", "measured", "n")
    return {
        **{name: getattr(verdict, name) for name in kept},
        "margin": verdict.margin,
        "reason": verdict.reason,
    }


def _post(address: str, body: bytes, timeout: float) -> str | None:
    """Post, in a thread: the timeout of a socket starts anew with every byte that comes."""
    problems: list[str | None] = []
    thread = threading.Thread(target=lambda: problems.append(_send(address, body, timeout)))
    thread.daemon = True
    thread.start()
    thread.join(timeout)
    return problems[0] if problems else f"the address did not answer within {timeout:g} s"


def _send(address: str, body: bytes, timeout: float) -> str | None:
    import urllib.error  # with TLS they take as long to load as the rest of the plugin's reports
    import urllib.request
    from http.client import HTTPException

    class Unmoved(urllib.request.HTTPRedirectHandler):
        """A redirected post would be sent without its body, and be answered as if all were well."""

        def redirect_request(self, *arguments: Any) -> None:
            return None

    # Addresses of chat services are secrets: none is repeated in a message.
    headers = {"Content-Type": "application/json", "User-Agent": "pytest-llmeval"}
    try:
        request = urllib.request.Request(address, body, headers)
        with urllib.request.build_opener(Unmoved).open(request, timeout=timeout):
            return None
    except urllib.error.HTTPError as error:
        return f"the address answered {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return f"the address cannot be reached: {error.reason}"
    except (OSError, ValueError, HTTPException) as error:
        return f"the address cannot be reached: {type(error).__name__}"


def _run(command: str, body: bytes, timeout: float) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"the command cannot be split into words: {error}"
    if not words:
        return "the command is empty"
    # What it says goes to a file: a grandchild that keeps a pipe open must not keep us waiting.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"{words[0]}: {error.strerror or error}"
        try:
            process.communicate(body, timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return f"{words[0]} did not end within {timeout:g} s"
        if process.returncode == 0:
            return None
        output.seek(0)
        said = output.read(2000).decode("utf-8", "replace").strip()
        return f"{words[0]} ended with exit code {process.returncode}" + (
            f": {said}" if said else ""
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the command and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
