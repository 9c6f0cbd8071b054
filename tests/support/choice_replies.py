"""A question that replies answer in words."""

from __future__ import annotations

METALS = ("iron", "iron oxide", "copper", "zinc")
