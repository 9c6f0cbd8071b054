"""Exceptions of the package, each with its one consequence, and suggestions for misspelt names.

::

    LlmevalError                   base class, never raised
    ├── ConfigError                exit code 4
    │   ├── DataError              exit code 4
    │   ├── RunError               exit code 4
    │   └── MismatchError          exit code 4    runs/comparison.py
    ├── ModelError                 exit code 1
    │   └── SpendLimitError        exit code 1    models/openai/limits.py
    ├── UnanswerableError          exit code 1    evaluation/recorder.py
    ├── PromptError                item error     models/hf/encoding.py
    ├── RequestFailedError         item error     models/openai/faults.py
    ├── LaunchError                item error     sandbox/cell.py
    ├── BatchFailedError           item error     evaluation/evaluator.py
    ├── CellLostError              handled        sandbox/cell.py
    └── UnsupportedModelError      handled        models/hf/packed_attention.py

- ``exit code 4``: a user's mistake, printed in one line by the plugin (as ``pytest.UsageError``,
  which is final and so cannot be a base class) or by the command.
- ``exit code 1``: no further item can be answered. The session ends, and its run is incomplete.
  A ConfigError that is first raised while items are answered, for example because the disk is
  full, has the same consequence: it becomes an UnanswerableError.
- ``item error``: one item has no answer. Its record has the outcome ``error`` and the message.
  A batch of requests that failed is halved and sent again, until one request is the cause.
- ``handled``: caught by the caller, without a consequence of its own. A program whose cell was
  lost runs a second time and then counts as failed; an unsupported model is computed by
  transformers itself.

The code in ``sandbox/guest`` runs in a process without this package, so that its exceptions derive
from Python's own. They end in that process, which reports a status (``error`` for a check that
cannot be run)::

    Exception
    ├── ClosedError                handled        sandbox/guest/channel.py
    └── UnsendableError            item error     sandbox/guest/checker.py
    ValueError
    └── BadValueError              handled        sandbox/guest/serialization.py
    BaseException
    └── LostError                  handled        sandbox/guest/checker.py
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LlmevalError(Exception):
    """Base class of all exceptions that the package defines."""


class ConfigError(LlmevalError):
    """A user's mistake, in one line: what is wrong, where, and the nearest valid spelling."""


class DataError(ConfigError):
    """Benchmark data that cannot be found, read, or trusted."""


class RunError(ConfigError):
    """A run folder that cannot be read or written."""


class ModelError(LlmevalError):
    """A model that cannot be loaded or used at all (a single failed item is a Response)."""


_MOST_LISTED = 22  # valid names in a message


def nearest(name: str, valid_names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the valid name most similar to ``name``, ignoring case; None if none is similar.

    ``cutoff``: the smallest ratio of ``difflib.SequenceMatcher``, in [0, 1].
    """
    folded = {valid.casefold(): valid for valid in sorted(set(valid_names), reverse=True)}
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def suggestion(name: str, valid_names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?``, else the valid names if they are few, else an empty text."""
    candidates = sorted(set(valid_names))
    near = nearest(name, candidates)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(candidates)}" if 0 < len(candidates) <= _MOST_LISTED else ""
