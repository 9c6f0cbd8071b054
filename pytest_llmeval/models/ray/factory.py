"""Custom models that run as replicas: a function that constructs the model on a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFactory:
    """Value of a ``model`` fixture that constructs the model where it runs."""

    make: Callable[[], object]


def pooled(make: Callable[[], object]) -> ModelFactory:
    """Return a value for a ``model`` fixture that is constructed once per replica.

    ``make``: a function without required arguments that returns what a ``model`` fixture may
    return. With ``--llm-ray`` every replica calls it on its node, otherwise it is called once, in
    pytest's process. Everything that it imports has to be installed on the nodes; a function of a
    ``conftest.py`` is sent together with what it uses of that file.

    >>> pooled(dict).make()
    {}
    """
    return ModelFactory(make)
