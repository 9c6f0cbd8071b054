"""What a test sees of the answer to its item."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.reports.formatting import display_text


@dataclass(frozen=True, repr=False)
class Answer:
    """What a test sees of the model's answer to its item.

    ``correct`` is what most tests assert: with several samples, that at least one is right.
    ``extracted`` is the label or text that the scorer read (None: nothing could be read);
    ``text`` the reply, for protocols that generate; ``logprobs`` one value per option, for
    those that compare: all three of the first sample. ``samples`` has the records of all;
    ``seconds`` is the item's share of what its batch cost.
    """

    item: Item
    samples: tuple[Record, ...]

    @property
    def outcome(self) -> Outcome:
        """The best of the samples' outcomes."""
        if len(self.samples) == 1:
            return self.samples[0].outcome
        found = {sample.outcome for sample in self.samples}
        return next(outcome for outcome in Outcome if outcome in found)

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT

    @property
    def extracted(self) -> str | None:
        return self.samples[0].answer

    @property
    def text(self) -> str | None:
        return self.samples[0].text

    @property
    def logprobs(self) -> tuple[float, ...]:
        return self.samples[0].logprobs

    @property
    def seconds(self) -> float | None:
        known = [sample.seconds for sample in self.samples if sample.seconds is not None]
        return sum(known) if known else None

    def __repr__(self) -> str:
        # Shown by pytest's assertion rewriting for every wrong item: keep it short and cheap.
        first = self.samples[0]
        if len(self.samples) > 1:
            right = sum(sample.outcome is Outcome.CORRECT for sample in self.samples)
            return f"<answer {right} of {len(self.samples)} samples right, gold {first.gold}>"
        read = "nothing that can be read" if first.answer is None else first.answer
        return f"<answer {read}, gold {first.gold}>"


def reason(answer: Answer) -> str:
    """Why an item counts as wrong, as pytest shows it behind the test's name."""
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
