"""The full content of a protocol, and its fingerprint: scores are comparable if it is equal."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.core import canonical_json
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.matched.embedding import DEFAULT
from pytest_llmeval.scorers.matched.embedding import embedder_identity


def protocol_content(protocol: Protocol) -> dict[str, Any]:
    """Return the protocol's name and everything that can change a score, as plain JSON values.

    The template is represented by its rendering of a fixed item, so that any change of its text
    changes the fingerprint, wherever its code is; its renderings of the data are in
    ``prompts_used``. Raises ConfigError for a template that fails on the fixed item, and for an
    unknown scorer.
    """
    try:
        template = _probe(protocol.template)
    except Exception as error:
        raise ConfigError(
            f"protocol {protocol.name!r}: template {protocol.template.name!r} fails on an item of"
            f" ten options: {type(error).__name__}: {error}"
        ) from error
    decoding = protocol.decoding
    return {
        "name": protocol.name,
        "ask": protocol.ask,
        "scorer": protocol.scorer,
        "scorer_version": get_scorer(protocol.scorer).version,
        **_embedding(protocol.scorer),
        "shots": protocol.shots,
        "draw": _draw(protocol),
        "shots_used": protocol.shots_used,
        "prompts_used": protocol.prompts_used,
        "chat": protocol.chat,
        "shots_as_text": protocol.chat and protocol.shots_as_text,
        "prefix": protocol.prefix,
        # Only if there is one, so that other protocols keep their fingerprints.
        **({"system": protocol.system} if protocol.chat and protocol.system else {}),
        **({"sandbox": protocol.sandbox} if get_scorer(protocol.scorer).jobs else {}),
        "samples": protocol.answers_per_item,
        "decoding": None
        if protocol.ask == "choices"
        else {
            "max_tokens": decoding.max_tokens,
            "temperature": float(decoding.temperature),
            "top_p": float(decoding.top_p),
            "top_k": decoding.top_k,
            "min_p": float(decoding.min_p),
            "stop": list(decoding.stop),
            # Only if there is one, so that other protocols keep their fingerprints.
            **({"blank_stop": "behind text"} if any(map(str.isspace, decoding.stop)) else {}),
        },
        "template": template,
        # Only if there are any, so that other protocols keep their fingerprints.
        **({"origin": dict(protocol.origin)} if protocol.origin else {}),
    }


def fingerprint(protocol: Protocol) -> str:
    """Return the SHA-256 (first 16 hex digits) of the protocol's content without its name."""
    content = protocol_content(protocol)
    del content["name"]
    return hashlib.sha256(canonical_json(content)).hexdigest()[:16]


def _embedding(scorer: str) -> dict[str, str]:
    """Return the identity of the embedding model of a scorer that compares meanings."""
    base, _, model = scorer.partition("+")
    return {"scorer_embedding": embedder_identity(model or DEFAULT)} if base == "matched" else {}


def _draw(protocol: Protocol) -> str | None:
    if protocol.shots == 0:
        return None
    if protocol.draw != "first":
        spare = ", with one to spare" if protocol.draw == "lmeval_spare" else ""
        return f"from the pool at random, as lm-eval draws{spare}"
    source = "the protocol's own" if protocol.examples else "the pool"
    return f"first of {source}" + ("" if protocol.allow_copies else ", without copies")


class _AnyField(dict[str, str]):
    """Mapping that has every field, so that a template can use those of its own benchmark."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def _probe(template: Template) -> dict[str, Any]:
    if template.prompt is not None:  # its prompts are all in ``prompts_used``
        return {"name": template.name}
    options = tuple(f" option {label} " for label in LABELS[:10])
    probe = Item("probe", "probe_subject", " Q? ", 1, options, _AnyField())
    if not template.choices(probe):
        probe = replace(probe, gold=" gold text ")
    return {
        "name": template.name,
        "description": template.description(probe.subject),
        "question": template.question(probe),
        "choices": list(template.choices(probe)),
        "shot_answer": template.shot_answer(probe),
        "delimiter": template.delimiter,
        "separator": template.separator,
        # Only if there is one, so that other protocols keep their fingerprints.
        **({} if template.prefix is None else {"prefix": template.prefix(probe)}),
        **({} if template.given is None else {"given": list(template.given(probe))}),
    }
