"""The errors of the project. Each is told in one line at one of the front doors."""

from __future__ import annotations


class ConfigError(Exception):
    """A user mistake, told in one line: what is wrong, where, and the nearest valid spelling.

    The front doors turn it into their own kind of usage error (``pytest.UsageError``, which
    is final and so cannot be a base class; exit code 4 in both).
    """


class DataError(ConfigError):
    """Benchmark data that cannot be found, read, or trusted."""


class ModelError(Exception):
    """A model that cannot be loaded or used at all (one item that fails is a Response)."""


class RunError(ConfigError):
    """A run folder that cannot be read or written."""
