"""What tests of planted biases share: options under letters, as the source of a template."""

from __future__ import annotations

TEMPLATE = """
TEMPLATE = Template(
    name="letters",
    description=lambda subject: f"About {subject}.\\n\\n",
    question=lambda item: item.question + "".join(
        f"\\n{letter}. {option}" for letter, option in zip("ABCDE", item.options)) + "\\nAnswer:",
    choices=lambda item: tuple("ABCDE"[:len(item.options)]),
)
"""
