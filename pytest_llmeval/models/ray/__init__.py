"""Replicas of a model on a Ray cluster, or on this machine; Ray is imported by the first of them."""

from __future__ import annotations

from pytest_llmeval.models.ray.factory import ModelFactory
from pytest_llmeval.models.ray.factory import pooled

__all__ = ["ModelFactory", "pooled"]
