"""The value of the `answer` fixture."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.reports.formatting import display_text


@dataclass(frozen=True, repr=False)
class Answer:
    """The model's answer to the item of a test.

    ``extracted``, ``text`` and ``logprobs`` are those of the first sample; ``samples`` has the
    records of all samples.
    """

    item: Item
    samples: tuple[Record, ...]

    @property
    def outcome(self) -> Outcome:
        """Best outcome of the samples."""
        if len(self.samples) == 1:
            return self.samples[0].outcome
        outcomes = {sample.outcome for sample in self.samples}
        return next(outcome for outcome in Outcome if outcome in outcomes)

    @property
    def correct(self) -> bool:
        """True if the answer is right: with several samples, if at least one is."""
        return self.outcome is Outcome.CORRECT

    @property
    def extracted(self) -> str | None:
        """Label or text that the scorer extracted from the reply; None if there is none."""
        return self.samples[0].answer

    @property
    def text(self) -> str | None:
        """Reply of the model, for protocols that generate text."""
        return self.samples[0].text

    @property
    def logprobs(self) -> tuple[float, ...]:
        """Log probabilities of the options, in their order, for protocols that compare them."""
        return self.samples[0].logprobs

    @property
    def seconds(self) -> float | None:
        """The item's share of the time of its batch, summed over samples; None if not measured."""
        measured = [sample.seconds for sample in self.samples if sample.seconds is not None]
        return sum(measured) if measured else None

    def __repr__(self) -> str:
        # Computed by pytest's assertion rewriting for every wrong item: keep it short and cheap.
        first = self.samples[0]
        if len(self.samples) > 1:
            right = sum(sample.outcome is Outcome.CORRECT for sample in self.samples)
            return f"<answer {right} of {len(self.samples)} samples right, gold {first.gold}>"
        extracted = "nothing extracted" if first.answer is None else first.answer
        return f"<answer {extracted}, gold {first.gold}>"


def wrong_reason(answer: Answer) -> str:
    """Return why an item counts as wrong, for pytest to print after the test's name."""
    first = answer.samples[0]
    gold = display_text(first.gold)
    if len(answer.samples) > 1 and answer.outcome is Outcome.UNPARSED:
        return f"unparsed: no answer could be read in {len(answer.samples)} samples, gold {gold}"
    if len(answer.samples) > 1:
        right = sum(sample.outcome is Outcome.CORRECT for sample in answer.samples)
        return f"wrong: {right} of {len(answer.samples)} samples right, gold {gold}"
    if first.outcome is Outcome.UNPARSED:
        return f"unparsed: no answer could be read, gold {gold}"
    if first.answer is None or first.answer == first.gold:
        return f"wrong: the test's own check failed, gold {gold}"
    return f"wrong: answered {display_text(first.answer)}, gold {gold}"
