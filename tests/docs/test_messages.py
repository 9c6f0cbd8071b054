"""Every message of the package names what is wrong and stays on one line."""

from __future__ import annotations

import re

import pytest

from pytest_llmeval.plugin.options import _OPTIONS
from support.messages import messages

MESSAGES = sorted(messages())
OPTION = re.compile(r"--llm-[a-z-]+")


def test_messages_of_every_kind_are_listed():
    kinds = {message.kind for message in MESSAGES}
    assert kinds == {"error", "help", "report"}
    packages = {message.path.split("/")[1] for message in MESSAGES}
    assert {"catalog", "cli", "gates", "models", "plugin", "runs", "sources"} <= packages


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.path}:{message.line}")
def test_message_form(message):
    """Messages are one line without a full stop at the end, as pytest's own usage errors."""
    assert message.text.strip(), "empty"
    assert "\n" not in message.text.strip()
    assert not message.text.rstrip().endswith("!")
    assert "  " not in message.text.strip(), "two spaces in a row"


def test_named_options_exist():
    options = {f"--llm-{option.flag}" for option in _OPTIONS}
    named = {name for message in MESSAGES for name in OPTION.findall(message.text)}
    assert named <= options
